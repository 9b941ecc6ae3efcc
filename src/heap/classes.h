/* Size classes: which sizes blocks come in, and what a slab of each looks like. Constant tables,
 * made by tools/classes.py. */
#ifndef HAKMEM_HEAP_CLASSES_H
#define HAKMEM_HEAP_CLASSES_H

#include "back/map.h"
#include "base/defs.h"
#include "heap/class_table.h"

#define CLASS_BYTES 16

struct size_class {
    uint32_t size;       /* bytes of a block */
    uint32_t reciprocal; /* ceil(2^31 / size in grains): a block's number by multiplication */
    uint16_t blocks;     /* in a slab */
    uint8_t slices;      /* of a slab */
    uint8_t first;       /* blocks that a new thread's stack holds */
    uint16_t sparse;     /* free blocks from which on a page may be free */
};

/* By class, or by stack: a bin of the map leads to its row by its offset alone. */
extern const struct size_class size_classes[STACKS] HIDDEN;

static_assert(sizeof(struct size_class) == CLASS_BYTES, "found by a bin's offset");

/* A little more than 2^64 / size: a block of the class begins at a multiple of 16 exactly where the
 * offset in its slice times this, modulo 2^64, is less than this. 0 for blocks of whole slices. */
extern const uint64_t class_inverses[CLASSES] HIDDEN;

/* By size in grains, rounded up: the bin's offset, as in the address map. */
extern const uint16_t class_bin_offsets[CLASS_MOST / CLASS_GRAIN + 1] HIDDEN;

static_assert(CLASS_BIN_FIRST == BIN_FIRST && CLASS_BIN_BYTES == BIN_BYTES,
              "the table is made for the map's bins");

/* By size in bytes. */
extern const uint16_t class_small_bin_offsets[CLASS_SMALL + 1] HIDDEN;

/* n from 0 to CLASS_MOST; 0 is served as 1. */
FAST size_t class_bin_offset(size_t n)
{
    return class_bin_offsets[(n + CLASS_GRAIN - 1) / CLASS_GRAIN];
}

/* If n is a multiple of `align`, a power of two, all blocks of its class are at multiples of
 * `align`: slabs begin at multiples of 64 KiB, and if the classes' step is smaller than `align`, n
 * is itself the size of a class. tools/classes.py checks it for all n. */
FAST unsigned class_of(size_t n) { return (unsigned)(class_bin_offset(n) / BIN_BYTES) - BIN_FIRST; }

extern const uint8_t class_by_slices[CLASS_SLICES_MOST / SLICE] HIDDEN;

/* The class of a size beyond the table, up to CLASS_SLICES_MOST. */
FAST unsigned class_of_slices(size_t n) { return class_by_slices[(n - 1) / SLICE]; }

/* ---- stacks ----
 *
 * A thread has one stack for each class, and for the first CLASSES_THIN classes a second one, for
 * blocks of thin slabs (thin.h). From BIN_FIRST on, each bin of the map is a stack's. */
FAST unsigned bin_stack(unsigned bin) { return bin - BIN_FIRST; }
FAST bool stack_is_thin(unsigned stack) { return stack >= CLASSES; }
FAST unsigned stack_class(unsigned stack) { return stack_is_thin(stack) ? stack - CLASSES : stack; }

/* Whether the class's stacks are bounded by bytes. */
FAST bool stack_is_large(unsigned stack) { return stack >= CLASS_LARGE && stack < CLASSES; }

#endif

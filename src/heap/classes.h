/* Size classes: which sizes blocks come in, and what a slab of each looks like. Constant tables,
 * made by tools/classes.py. */
#ifndef HAKMEM_HEAP_CLASSES_H
#define HAKMEM_HEAP_CLASSES_H

#include "back/map.h"
#include "base/atomic.h"
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

FAST const struct size_class *class_of_offset(size_t offset)
{
    return (const struct size_class *)((const char *)size_classes +
                                       offset / (BIN_BYTES / CLASS_BYTES)) -
           BIN_FIRST;
}

/* A little more than 2^64 / size: a block of the class begins at a multiple of 16 exactly where the
 * offset in its slice times this, modulo 2^64, is less than this. 0 for blocks of whole slices. */
extern const uint64_t class_inverses[CLASSES] HIDDEN;

/* Which bin malloc takes a block from, by the size: its offset, as in the address map. While
 * malloc is closed (classes_close) all are those of BIN_FOREIGN, where no block ever is, so each
 * call takes the slow path. They lie in pages of their own, which are read-only but for the moment
 * of a change, and not at a page's start: there the first cache has the threads' stacks. */
struct class_offsets {
    uint8_t before[512];
    uint16_t small[CLASS_SMALL + 1];               /* by bytes */
    uint16_t above[CLASS_MOST / CLASS_STEP + 1];   /* beyond: by steps, rounded up */
    uint16_t by_slices[CLASS_SLICES_MOST / SLICE]; /* beyond those, by slices */
} __attribute__((aligned(4096)));

extern const struct class_offsets class_offsets HIDDEN __attribute__((section(".rodata_offsets")));

static_assert(CLASS_BIN_FIRST == BIN_FIRST && CLASS_BIN_BYTES == BIN_BYTES,
              "the tables are made for the map's bins");

/* n from 0 to CLASS_SMALL; beyond that, to CLASS_MOST; and any of these. 0 is served as 1. */
FAST size_t class_small_bin_offset(size_t n) { return load_own(&class_offsets.small[n]); }
FAST size_t class_above_bin_offset(size_t n)
{
    return load_own(&class_offsets.above[(n + CLASS_STEP - 1) / CLASS_STEP]);
}
FAST size_t class_bin_offset(size_t n)
{
    return likely(n <= CLASS_SMALL) ? class_small_bin_offset(n) : class_above_bin_offset(n);
}

/* n beyond CLASS_MOST, up to CLASS_SLICES_MOST. */
FAST size_t class_slices_bin_offset(size_t n)
{
    return load_own(&class_offsets.by_slices[(n - 1) / SLICE]);
}

/* The tables as they are while malloc is not closed; null before it ever was. */
extern const struct class_offsets *class_offsets_closed HIDDEN;

FAST size_t class_bin_offset_closed(size_t n)
{
    return likely(n <= CLASS_SMALL)
               ? class_offsets_closed->small[n]
               : class_offsets_closed->above[(n + CLASS_STEP - 1) / CLASS_STEP];
}

/* Has each malloc take the slow path: of a size whose class is one of the first `count`, when it
 * finds nothing at the offset `at` of the first class, `step` further for each. Null: no more. One
 * thread at a time. False where there is no memory, or the kernel does not let the tables be
 * changed, or has larger pages. */
struct ahead_offsets {
    uint16_t at, step;
    unsigned count;
};
bool classes_close(const struct ahead_offsets *ahead);

/* The class of n bytes, 0 to CLASS_MOST: tools/classes.py has the sizes. If n is a multiple of
 * `align`, a power of two, all blocks of its class are at multiples of `align`: slabs begin at
 * multiples of 64 KiB, and if the classes' step is smaller than `align`, n is itself the size of a
 * class. tools/classes.py checks it for all n. */
FAST unsigned class_of(size_t n)
{
    size_t last = n - (n != 0); /* the number of the last byte */
    if (last < CLASS_STEPS_FROM)
        return (unsigned)(last / CLASS_GRAIN);
    unsigned doublings = highest_bit(last) - highest_bit(CLASS_STEPS_FROM);
    return CLASS_STEPS_FROM / CLASS_GRAIN + CLASS_PER_DOUBLING * doublings +
           (unsigned)(last >> (highest_bit(last) - highest_bit(CLASS_PER_DOUBLING))) %
               CLASS_PER_DOUBLING;
}

extern const uint8_t class_by_slices[CLASS_SLICES_MOST / SLICE] HIDDEN;

/* The class of a size beyond the table, up to CLASS_SLICES_MOST. */
FAST unsigned class_of_slices(size_t n) { return class_by_slices[(n - 1) / SLICE]; }

/* The class of a block of whole slices of n bytes at a multiple of `align`. */
static inline unsigned class_of_whole(size_t n, size_t align)
{
    size_t least = align <= SLICE ? larger(n, align) : n;
    return class_of_slices(larger(least, CLASS_MOST + 1));
}

/* How many blocks lie before this offset, whole ones; for one that is a multiple of 16. */
FAST unsigned blocks_before(const struct size_class *c, size_t offset)
{
    return (unsigned)((uint64_t)(offset / CLASS_GRAIN) * c->reciprocal >> CLASS_RECIPROCAL_BITS);
}

/* ---- stacks ----
 *
 * A thread has one stack for each class, and for the first CLASSES_THIN classes a second one, for
 * blocks of thin slabs (slab.h). From BIN_FIRST on, each bin of the map is a stack's. */
FAST unsigned bin_stack(unsigned bin) { return bin - BIN_FIRST; }
FAST bool stack_is_thin(unsigned stack) { return stack >= CLASSES; }
FAST unsigned stack_class(unsigned stack) { return stack_is_thin(stack) ? stack - CLASSES : stack; }

/* Whether the class's stacks are bounded by bytes. */
FAST bool stack_is_large(unsigned stack) { return stack >= CLASS_LARGE && stack < CLASSES; }

#endif

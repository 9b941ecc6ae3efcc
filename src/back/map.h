/* The address map: what lies at an address, a bin offset and a descriptor for each slice of 64 KiB.
 *
 * Superslabs lie in a window of 8 GiB of address space, aligned to its size. The window has one
 * flat table: two bytes for each slice of 64 KiB say which bin takes a block that is freed there.
 * The table is zeroed static memory, of which only the used part is ever touched. A free of an
 * address outside the window takes the slow path. No pointer that is looked up is ever
 * dereferenced.
 *
 * For any address a root leads to leaves for 4 GiB each. A leaf is mapped when the first slice in
 * it is used. It has the descriptor of each slice and, outside the window, its bin offset.
 *
 *   free -> map_bin_offset                  1 load
 *   slow path, flush -> map_bin, map_owner  the same for any address, and the descriptor
 */
#ifndef HAKMEM_BACK_MAP_H
#define HAKMEM_BACK_MAP_H

#include "base/atomic.h"
#include "base/defs.h"

#define SLICE_BITS 16
#define SLICE ((size_t)1 << SLICE_BITS)

/* A bin is where blocks of one kind go when they are freed. The map holds its offset: its distance
 * from the start of a cache in bytes, so that the fast path only adds. The first bins take no
 * blocks: they are always full, which leads to the slow path. */
#define BIN_BYTES 32
#define BIN_FOREIGN 0 /* nothing of ours begins in this slice */
#define BIN_HUGE 1    /* a mapping of its own; the owner is its struct huge */
#define BIN_WHOLE 2   /* a block of whole slices in use; the owner is its slab, as for all below */
#define BIN_WHOLE_FREE 3 /* the same, free: in a thread's stack, say */
#define BIN_SAMPLED 4    /* blocks that a profile watches, of a class or of whole slices */
#define BIN_FIRST 5      /* class 0 */

#define MAP_LEAF_BITS 28 /* of the addresses that one leaf of the map covers */

#define WINDOW_BITS 33
#define WINDOW ((size_t)1 << WINDOW_BITS)
#define WINDOW_SLICES (WINDOW / SLICE)

/* Where the window begins: between the program, low or at 0x55..., and the libraries at 0x7f... the
 * kernel puts nothing. Some programs put memory at fixed addresses there, over what lies there
 * already: CLISP its heap, from 16 to 32 TiB. AddressSanitizer's shadow ends at 16 TiB, and those
 * of Go's race detector begin at 32 and 48 TiB: this is 40 TiB. No block begins at the base itself,
 * so it also stands for "no block" at the bottom of a stack. */
#define WINDOW_BASE \
    ((uintptr_t)(UNDER_TSAN ? 32 : 5120) * WINDOW) /* ThreadSanitizer's room ends early */
extern void *const window_base HIDDEN;

/* In a hardened heap, where no free takes the fast path, superslabs lie in a wider range
 * (superslabs.h).
 */
#define WIDE ((size_t)1 << (UNDER_TSAN ? 36 : 39))
#define WIDE_BASE (WINDOW_BASE + WIDE)

extern uint16_t window_bin_offsets[WINDOW_SLICES] HIDDEN; /* atomic */

/* The entry of p's slice in the flat table; null where p is not in the window, or not a multiple of
 * 16: then one of the bits that are rotated or shifted to the top is set. */
FAST uint16_t *map_window_entry(const void *p)
{
    uintptr_t grain = (uintptr_t)p >> 4 | (uintptr_t)p << 60;
    uintptr_t slice = (grain ^ WINDOW_BASE >> 4) >> (SLICE_BITS - 4);
    return likely(slice < WINDOW_SLICES) ? &window_bin_offsets[slice] : NULL;
}

/* The offset of the bin that p's slice names; false where it has no entry there. */
FAST bool map_bin_offset(const void *p, size_t *offset)
{
    const uint16_t *entry = map_window_entry(p);
    if (unlikely(entry == NULL))
        return false;
    *offset = load_relaxed(entry);
    return true;
}

/* The same for a p that is not in the window; 0 where it has none, or is. */
size_t map_offset_outside(const void *p);

/* What stands for "no block". */
FAST void *window_mark(void) { return NUMBERS_IN_MEMORY ? window_base : (void *)WINDOW_BASE; }

/* The bin and the descriptor of the slice at p, any address: "foreign" and null where nothing of
 * ours begins. */
unsigned map_bin(const void *p);
void *map_owner(const void *p);
unsigned map_find(const void *p, void **owner); /* both */

/* The descriptor of an entry of the window's table that names one. */
void *map_entry_owner(const uint16_t *entry);

/* Once, before the first entry. */
void map_start(void);

/* The start of the nearest slice at or below p, any address, whose entry names a descriptor; null
 * if there is none. Walks: for reports. */
const void *map_below(const void *p);

/* Makes room for entries of [start, start + length); false without memory. */
bool map_cover(const void *start, size_t length);

/* Makes room in two steps, of which the second can't fail, because the address to which a mapping
 * is moved is known only after the move. The first returns false without memory. */
struct map_room {
    struct map_leaf *leaf;
    struct map_middle *middle;
};
bool map_cover_any(struct map_room *room);
void map_cover_by(const void *p, const struct map_room *room);

/* Takes the owner out of p's entry, if that says `bin`; then it says "foreign". Null if it says
 * something else; of two that try, one gets null. */
void *map_clear(const void *p, unsigned bin);

/* The free block of whole slices at p, which the caller holds, comes into use; its slab. */
void *map_whole_taken(const void *p);

/* It is freed: its slab; null if it is no such block in use. Of any number that free it at once one
 * gets it. */
void *map_whole_freed(const void *p);

/* Whether the entry's owner is a slab. */
FAST bool bin_of_slab(unsigned bin) { return bin >= BIN_WHOLE; }

/* Sets the entries of n slices from start, which are covered. */
void map_set(const void *start, size_t slices, unsigned bin, void *owner);

/* The next slice from *address on whose entry says anything; false behind the last. */
bool map_next(uintptr_t *address);

/* Bytes of the map that are metadata (meta.h): all but the window's table and the root. */
size_t map_bytes(void);

#endif

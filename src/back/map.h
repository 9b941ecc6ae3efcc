/* The address map: what lies at an address.
 *
 * Two bytes per 64 KiB slice say which bin takes a block that is freed there; one pointer per slice
 * names the descriptor behind it. A root in zeroed static memory leads to leaves of 4 GiB each,
 * mapped when the first slice in them is used.
 *
 * A root entry is the leaf's distance from a leaf of zeroes in the map itself, so zero, which static
 * memory is at the start, leads to that one: an address that was never ours reads 0 with no test
 * and before anything was set up. No pointer that is looked up is ever dereferenced.
 *
 *   free -> map_place          2 loads, no branch
 *   door, flush -> map_owner   the descriptor
 */
#ifndef HAKMEM_BACK_MAP_H
#define HAKMEM_BACK_MAP_H

#include "base/asm.h"
#include "base/atomic.h"
#include "base/defs.h"

#define SLICE_BITS 16
#define SLICE ((size_t)1 << SLICE_BITS)

/* A bin is where blocks of one kind go when they are freed. The map holds its place: its distance
 * from the start of a cache in bytes, so that the fast path only adds. The first bins take no
 * blocks: they are always full, which leads to the door. */
#define BIN_BYTES 16
#define BIN_FOREIGN 0 /* nothing of ours begins in this slice */
#define BIN_LARGE 1   /* a run of slices; the owner is its superslab */
#define BIN_HUGE 2    /* a mapping of its own; the owner is its struct huge */
#define BIN_FIRST 4   /* class 0; 3 is kept for watched blocks */

#define MAP_REGION_BITS 32
#define MAP_REGIONS 0x10000u /* 48 bits of address */
#define MAP_SLICES ((size_t)1 << (MAP_REGION_BITS - SLICE_BITS))

struct map_leaf {
    uint16_t places[MAP_SLICES]; /* atomic */
    void *owners[MAP_SLICES];    /* atomic; changes under the lock of what it names */
};

struct map {
    /* Read without atomics on the fast path: whoever has a block has seen its region's entry. The
     * last one stays zero. */
    intptr_t root[MAP_REGIONS + 1];
    uint16_t nothing[MAP_SLICES]; /* the leaf of all that was never ours: places only */
};

extern struct map map HIDDEN;

/* MAP_REGIONS, from memory: one instruction less than from the code. */
extern const uintptr_t map_beyond HIDDEN;

/* An address that is not a multiple of 16, or beyond the address space, counts as never ours: the
 * rotation brings its low bits to the top, where they lead beyond the last region. */
FAST uintptr_t map_region(uintptr_t address)
{
    uintptr_t region = (address >> 4 | address << 60) >> (MAP_REGION_BITS - 4);
    return likely(region < MAP_REGIONS) ? region : map_beyond;
}

/* The place of the bin that the slice at p names. */
FAST size_t map_place(const void *p)
{
    uintptr_t address = (uintptr_t)p;
    const char *leaf = (const char *)map.nothing;
    FORGET(leaf);
    const struct map *m = (const struct map *)(leaf - offsetof(struct map, nothing));
    leaf += m->root[map_region(address)];
    FORGET(leaf);
    return load_relaxed(&((const uint16_t *)leaf)[(uint32_t)address >> SLICE_BITS]);
}

static inline unsigned map_bin(const void *p) { return (unsigned)(map_place(p) / BIN_BYTES); }

/* The descriptor of the slice at p, null where nothing of ours begins. */
void *map_owner(const void *p);

/* Makes room for entries of [start, start + length); false without memory. */
bool map_cover(const void *start, size_t length);

/* Sets the entries of n slices from start, which are covered. */
void map_set(const void *start, size_t slices, unsigned bin, void *owner);

/* Around fork. */
void map_fork_lock(void);
void map_fork_unlock(void);

#endif

/* The address map: what lies at an address.
 *
 * Superslabs lie in a window of 256 GiB of address space, chosen at start. For it there is one flat
 * table: two bytes per 64 KiB slice say which bin takes a block that is freed there. It is zeroed
 * static memory of which only what is used is ever touched, so an address that was never ours reads
 * 0 with no test and before anything was set up, and no pointer that is looked up is dereferenced.
 *
 * For any address, in the window or not, a root leads to leaves of 4 GiB each, mapped when the
 * first slice in them is used, with the bin and the descriptor of each slice.
 *
 *   free -> map_place                  1 load behind p, no branch
 *   door, flush -> map_bin, map_owner  the same for any address, and the descriptor
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

#define WINDOW (256 * GiB)
#define WINDOW_SLICES (WINDOW / SLICE)

extern uintptr_t window_base HIDDEN;                   /* constant after start */
extern uint16_t window_places[WINDOW_SLICES] HIDDEN;   /* atomic */
extern const uintptr_t window_nowhere HIDDEN;          /* a slice that stays "foreign" */

/* The place of the bin that the slice at p names; "foreign" outside the window, and for a p that is
 * no multiple of 16: the rotation brings its low bits to the top, where they lead beyond the table.
 */
FAST size_t map_place(const void *p)
{
    uintptr_t offset = (uintptr_t)p - window_base;
    uintptr_t slice = (offset >> 4 | offset << 60) >> (SLICE_BITS - 4);
    slice = likely(slice < WINDOW_SLICES) ? slice : window_nowhere;
    return load_relaxed(&window_places[slice]);
}

/* The bin and the descriptor of the slice at p, any address: "foreign" and null where nothing of
 * ours begins. */
unsigned map_bin(const void *p);
void *map_owner(const void *p);

/* Makes room for entries of [start, start + length); false without memory. */
bool map_cover(const void *start, size_t length);

/* Sets the entries of n slices from start, which are covered. */
void map_set(const void *start, size_t slices, unsigned bin, void *owner);

/* Around fork. */
void map_fork_lock(void);
void map_fork_unlock(void);

#endif

/* How far ahead of its use memory is brought in: a page, as the kernel does it, a slab, or a huge
 * page. Pure functions; heap/shards.c and back/superslabs.c ask the kernel.
 *
 * A class that has many slabs will fill one more, and 16 pages brought in by one call cost two
 * thirds of 16 faults. A heap that grows by small blocks touches all its pages, and a huge page
 * costs one fault instead of 512. But only where the kernel has one at hand: where it must make
 * room, or asks a host for the memory, a heap took five times as long to fill. So the first touch
 * of each is timed, and after a slow one many superslabs start with small pages. */
#ifndef HAKMEM_LEARN_BRING_IN_H
#define HAKMEM_LEARN_BRING_IN_H

#include "learn/laws.h"

/* Whether a slab is brought in whole, of a class that has so many others. */
static inline bool slab_comes_whole(size_t others) { return others >= LAW_TINY_PART; }

/* Whether one may start with huge pages, of so many with the new one. */
static inline bool huge_starts_from(size_t superslabs) { return superslabs >= LAW_HUGE_START_FROM; }

/* Whether a superslab of so many slices was mostly in use by small blocks. */
static inline bool huge_starts_after(unsigned fine, unsigned slices)
{
    return fine >= slices - slices / LAW_SMALL_PART;
}

/* Whether the kernel had a page at hand. */
static inline bool huge_touch_is_slow(size_t nanoseconds)
{
    return nanoseconds >= LAW_HUGE_SLOW_NS;
}

/* How many superslabs are to be skipped after the next slow touch, after one that was slow, or not.
 */
static inline size_t huge_skip_next(size_t next, bool slow)
{
    if (slow)
        return next <= SIZE_MAX / 2 ? next * 2 : next;
    return larger(next / 2, LAW_HUGE_SKIP_LEAST);
}

#endif

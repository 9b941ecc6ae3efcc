/* What all stacks of a thread may hold together. Pure functions.
 *
 * Of many threads most use the heap but a little, and then sleep. So a share begins small and grows
 * with what was seen of the thread's use. */
#ifndef HAKMEM_LEARN_SHARE_H
#define HAKMEM_LEARN_SHARE_H

#include "learn/capacity.h"
#include "learn/laws.h"

/* Of the only thread. `bytes`: the option thread_bytes, here and below. */
static inline struct capacity_share share_alone(size_t bytes)
{
    return (struct capacity_share){.bytes = bytes, .weight = SIZE_MAX};
}

/* Of one thread of `threads` that has refilled so often: its part of what all may hold, which is a
 * part of what is in use, at most `keep`, but enough for a few; of many threads each has what it
 * grew to. */
static inline struct capacity_share share_at_work(size_t threads, size_t refills, size_t used,
                                                  size_t keep, size_t bytes)
{
    size_t all = larger(smaller(used / LAW_SMALL_PART, keep), LAW_TINY_PART * LAW_SHARE_LEAST);
    size_t least = smaller(LAW_SHARE_FIRST + refills * LAW_SHARE_REFILL, LAW_SHARE_LEAST);
    return (struct capacity_share){.bytes = bytes, .weight = larger(all / threads, least)};
}

/* Blocks that a new stack may hold: `first` where the share is no small one. Else of all classes
 * together a part of it; of small blocks always one, so that a pair of malloc and free does not
 * take the slow path. */
static inline size_t share_first(size_t size, size_t first, size_t weight)
{
    if (weight >= LAW_SHARE_LEAST)
        return first;
    size_t bytes = weight / LAW_FREES_A_LOOK;
    size_t blocks = bytes / size;
    if (blocks == 0 && size <= 2 * bytes)
        blocks = 1;
    return smaller(blocks, first);
}

/* ---- large blocks ---- */

/* Bytes of large blocks. `used_most`: what was in use at once, or 0 where there are other threads:
 * nobody takes from another thread's stacks, so each keeps one block of any class, up to
 * `largest`, a buffer that comes and goes; and all together a few of these. */
static inline size_t share_of_large(size_t threads, size_t used_most, size_t largest, size_t bytes)
{
    size_t least = smaller(largest, LAW_SMALL_PART * largest / larger(threads, 1));
    return smaller(larger(used_most / 2, least), 2 * bytes);
}

#endif

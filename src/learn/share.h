/* What all stacks of a thread may hold together. Pure functions.
 *
 * Of a crowd most threads use the heap but a little, and then sleep. So there a share begins small
 * and grows with what was seen of the thread's use, and a thread that has given back nearly all
 * keeps nothing. */
#ifndef HAKMEM_LEARN_SHARE_H
#define HAKMEM_LEARN_SHARE_H

#include "learn/capacity.h"
#include "learn/laws.h"

/* Of the only thread. `bytes`: the option thread_bytes, here and below. */
static inline struct capacity_share share_alone(size_t bytes)
{
    return (struct capacity_share){.bytes = bytes, .weight = SIZE_MAX};
}

/* Of one thread of `awake`: a part of what is in use, so that a small heap is not mostly stacks; at
 * most `keep` for all. Of few threads each has more than the least. */
static inline struct capacity_share share_at_work(size_t awake, size_t used, size_t keep,
                                                  size_t bytes)
{
    size_t all = larger(smaller(used / LAW_SMALL_PART, keep), LAW_SMALL_PART * LAW_SHARE_LEAST);
    return (struct capacity_share){.bytes = bytes, .weight = larger(all / awake, LAW_SHARE_LEAST)};
}

/* ---- in a crowd ---- */

static inline bool share_is_crowd(size_t awake) { return awake >= LAW_CROWD; }

/* Of a thread that has refilled so often. */
static inline struct capacity_share share_in_crowd(size_t refills, size_t bytes)
{
    size_t grown = LAW_CROWD_SHARE + refills * LAW_CROWD_SHARE_OF_REFILL;
    size_t most = smaller(smaller(grown, LAW_SHARE_LEAST), bytes);
    return (struct capacity_share){.bytes = most, .weight = most};
}

/* Blocks that a new stack may hold; `first` where there is no crowd. Of all classes together
 * little; of small blocks always one, so that a pair of malloc and free does not take the slow
 * path. */
static inline size_t share_first(size_t size, size_t first)
{
    size_t blocks = LAW_CROWD_FIRST / size;
    if (blocks == 0 && size <= LAW_CLEARLY * LAW_CROWD_FIRST)
        blocks = 1;
    return blocks < first ? blocks : first;
}

/* Whether a thread that took `taken` bytes more than it gave back, or a negative number, has little
 * left beside what its stacks may hold. One that was given others' blocks has given back more than
 * it took. */
static inline bool share_little_left(size_t taken, size_t capacity_bytes)
{
    return taken + LAW_SHARE_LEAST <= larger(capacity_bytes, LAW_SHARE_LEAST) + LAW_SHARE_LEAST;
}

/* Whether its stacks may hold too much for the crowd that there is now. */
static inline bool share_is_passed(size_t capacity_bytes, size_t share)
{
    return capacity_bytes > LAW_CLEARLY * share;
}

/* ---- large blocks ---- */

/* Bytes of large blocks. `used_most`: what was in use at once, or 0 where there are other threads:
 * nobody takes from the stacks of a thread that sleeps, so each keeps one block of any class, up to
 * `largest`, a buffer that comes and goes; and all together a few of these. */
static inline size_t share_of_large(size_t awake, size_t used_most, size_t largest, size_t bytes)
{
    size_t least = smaller(largest, LAW_SMALL_PART * largest / larger(awake, 1));
    return smaller(larger(used_most / LAW_CLEARLY, least), LAW_CLEARLY * bytes);
}

#endif

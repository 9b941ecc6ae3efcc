/* How much free memory may be kept beside what is in use. Pure functions. */
#ifndef HAKMEM_LEARN_KEEP_H
#define HAKMEM_LEARN_KEEP_H

#include "learn/laws.h"

/* Bytes that used and kept memory may be together: a little more than was in use at once, `most`,
 * and where so much lately went back in vain (`vain`, learn/returns.h) more of a small heap. What
 * is kept is to save work, not to make the process larger than its work makes it. */
static inline size_t keep_limit(size_t most, size_t vain)
{
    size_t least = larger(smaller(vain, LAW_SMALL_PART * LAW_LITTLE), LAW_LITTLE);
    return most + larger(most / LAW_TINY_PART, least);
}

/* ---- under a limit of memory: of a container, or one that the program set ---- */

/* Bytes of each kind of free memory that may be kept under a limit of all memory. */
static inline size_t keep_under_limit(size_t limit)
{
    return limit == SIZE_MAX ? SIZE_MAX : limit / LAW_TINY_PART;
}

/* What may be in use near a limit before it is close. */
static inline size_t keep_full(size_t limit)
{
    return limit == SIZE_MAX ? SIZE_MAX : limit - limit / LAW_SMALL_PART;
}

static inline bool keep_limit_is_close(size_t limit, size_t used)
{
    return used > keep_full(limit);
}

/* The number below which memory has to fall before it counts as having passed the limit again. */
static inline size_t keep_below_limit(size_t limit) { return limit - limit / LAW_TINY_PART; }

/* Whether a hardened heap may map so many bytes only to have its blocks lie far apart, or to keep
 * freed ones inaccessible, under a limit of addresses: they count where no page is touched. */
static inline bool keep_apart(size_t limit, size_t mapped)
{
    return mapped <= limit / LAW_SMALL_PART;
}

/* The least of a block that realloc leaves where it is when it becomes smaller: then no block is
 * more than twice as large as what it holds. */
static inline size_t keep_block_least(size_t usable) { return usable / 2; }

#endif

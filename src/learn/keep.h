/* How much free memory may be kept beside what is in use. Pure functions. */
#ifndef HAKMEM_LEARN_KEEP_H
#define HAKMEM_LEARN_KEEP_H

#include "learn/laws.h"

/* Bytes that may be kept at most because they were needed again. `most`: what was in use at once.
 */
static inline size_t keep_learned_most(size_t most)
{
    return larger(most / LAW_KEEP_LEARNED_PART, LAW_KEEP_LEARNED_LEAST);
}

/* What used and kept memory may be together, in bytes. `most`: what was in use at once. `learned`:
 * what was needed again after it went back because of this limit. Kept memory is for sizes that are
 * not those that came before: at first little, since most programs never need it. Without what is
 * learned, pages of large blocks in a small heap would come and go without end. */
static inline size_t keep_limit(size_t most, size_t learned)
{
    return most + larger(most / LAW_KEEP_PART, LAW_LITTLE) +
           smaller(learned, keep_learned_most(most));
}

/* Whether it was worth keeping: `bytes` went back because of the limit, `again` of them were taken
 * again, in so many milliseconds, and `lacked` is the most that had gone back at once and was not
 * taken again yet. If that is more than may be kept, the program's memory changes from one kind to
 * another, and the limit could spare only a part of it, for a larger process. What comes back no
 * faster than the pace gives back costs the program little. */
static inline bool keep_was_needed(size_t bytes, size_t again, size_t milliseconds, size_t lacked,
                                   size_t most)
{
    return lacked <= keep_learned_most(most) && again >= bytes / LAW_CLEARLY &&
           again > milliseconds * LAW_PACE_MS;
}

/* And what is learned then, of what was learned before. */
static inline size_t keep_learned(size_t before, size_t bytes, size_t most)
{
    return smaller(before + bytes, most);
}

/* ---- under a limit of memory: of a container, or one that the program set ---- */

/* Bytes of each kind of free memory that may be kept under a limit of all memory. */
static inline size_t keep_under_limit(size_t limit)
{
    return limit == SIZE_MAX ? SIZE_MAX : limit / LAW_LIMIT_PART;
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
static inline size_t keep_below_limit(size_t limit) { return limit - limit / LAW_LIMIT_PART; }

/* The least of a block that realloc leaves where it is when it becomes smaller: then no block is
 * more than twice as large as what it holds. */
static inline size_t keep_block_least(size_t usable) { return usable / 2; }

#endif

#include "learn/capacity.h"

#include "base/defs.h"

/* Of a stack that does not adapt: what most stacks come to that do. */
#define FIXED_BYTES ((size_t)64 * KiB)

static bool within(size_t blocks, size_t bytes, const struct capacity_seen *s)
{
    return blocks <= STACK_MOST &&
           (blocks * s->size <= bytes || (!s->foreign && blocks < ARRAY_LEAST)) &&
           s->held + (blocks - s->capacity) * s->size <= s->share.bytes &&
           s->weight + (blocks - s->capacity) * capacity_weight(s->size) <= s->share.weight;
}

/* What a stack of so many bytes may hold at most: alone, a thread may have any; of small blocks one
 * with others beside it has enough in a processor's cache. */
static size_t most_bytes(const struct capacity_seen *s, size_t stack_bytes)
{
    size_t shared = larger(LAW_SHARE_LEAST, LAW_FREES_A_LOOK * s->size);
    return s->shared ? smaller(shared, stack_bytes) : stack_bytes;
}

/* Of blocks that only pass through; of many threads, less. They, too, are best given
 * back in batches: those of 15 blocks of 64 bytes took 3 times as long as of 512. */
static size_t passing_bytes(const struct capacity_seen *s, size_t stack_bytes)
{
    size_t share = smaller(LAW_SHARE_LEAST / LAW_SMALL_PART, s->share.weight / LAW_TINY_PART);
    return smaller(share, stack_bytes);
}

/* Twice as much, on an array of whole size, or half of that where it is too much, and so on. */
static struct capacity grown(const struct capacity_seen *s, size_t bytes)
{
    size_t blocks = capacity_round(2 * s->capacity + 1);
    for (; blocks + 1 >= ARRAY_LEAST && blocks > s->capacity; blocks = (blocks + 1) / 2 - 1)
        if (within(blocks, bytes, s))
            return (struct capacity){blocks, s->event == STACK_EMPTY ? CAPACITY_MISSES
                                                                     : CAPACITY_OVERFLOWS};
    return (struct capacity){s->capacity, CAPACITY_FITS};
}

/* Not below what is always kept, and not up. */
static struct capacity shrunk(const struct capacity_seen *s, size_t blocks,
                              enum capacity_reason why)
{
    size_t to = smaller(s->capacity, larger(s->first, blocks));
    return (struct capacity){to, to < s->capacity ? why : CAPACITY_FITS};
}

struct capacity capacity_step(const struct capacity_seen *s, size_t stack_bytes)
{
    ASSERT(s->size >= 1);
    size_t passing = passing_bytes(s, stack_bytes);
    if (s->foreign && s->capacity * s->size > passing)
        return shrunk(s, passing / s->size, CAPACITY_FOREIGN);
    if (s->drains && !s->foreign)
        return shrunk(s, larger(passing / s->size, ARRAY_LEAST - 1), CAPACITY_DRAINS);
    if (s->held > s->share.bytes || s->weight > s->share.weight)
        return shrunk(s, s->capacity / 2, CAPACITY_SHARE);
    return grown(s, s->passes ? passing : most_bytes(s, stack_bytes));
}

size_t capacity_fixed(size_t size, size_t first, size_t stack_bytes)
{
    size_t bytes = smaller(stack_bytes, FIXED_BYTES);
    size_t blocks = capacity_round(smaller(bytes / size, STACK_MOST));
    for (; blocks + 1 >= ARRAY_LEAST && blocks > first; blocks = (blocks + 1) / 2 - 1)
        if (blocks * size <= bytes)
            return blocks;
    return first;
}

#include "learn/capacity.h"

static size_t larger(size_t a, size_t b) { return a > b ? a : b; }

static size_t smaller(size_t a, size_t b) { return a < b ? a : b; }

static bool within(size_t blocks, const struct capacity_seen *s, const struct policy *bounds)
{
    return blocks <= bounds->stack_blocks &&
           (blocks * s->size <= bounds->stack_bytes || blocks <= bounds->stack_least) &&
           s->held + (blocks - s->capacity) * s->size <= s->share;
}

static struct capacity grown(const struct capacity_seen *s, const struct policy *bounds)
{
    size_t blocks = capacity_round(2 * s->capacity + 1);
    if (!within(blocks, s, bounds))
        return (struct capacity){s->capacity, CAPACITY_FITS};
    return (struct capacity){blocks,
                             s->event == STACK_EMPTY ? CAPACITY_MISSES : CAPACITY_OVERFLOWS};
}

/* Not below what is always kept, and not up. */
static struct capacity shrunk(const struct capacity_seen *s, size_t blocks,
                              enum capacity_reason why)
{
    size_t to = smaller(s->capacity, larger(s->first, blocks));
    return (struct capacity){to, to < s->capacity ? why : CAPACITY_FITS};
}

struct capacity capacity_step(const struct capacity_seen *s, const struct policy *bounds)
{
    if (s->foreign)
        return shrunk(s, bounds->stack_foreign_bytes / s->size, CAPACITY_FOREIGN);
    if (s->drains)
        return shrunk(s, bounds->stack_drain_bytes / s->size, CAPACITY_DRAINS);
    if (s->held > s->share)
        return shrunk(s, s->capacity / 2, CAPACITY_SHARE);
    if (s->streak > 1)
        return grown(s, bounds);
    return (struct capacity){s->capacity, CAPACITY_FITS};
}

size_t capacity_fixed(size_t size, size_t first, const struct policy *bounds)
{
    size_t blocks =
        capacity_round(smaller(bounds->frozen_stack_bytes / size, bounds->stack_blocks));
    while (blocks > first &&
           (blocks > bounds->stack_blocks || blocks * size > bounds->frozen_stack_bytes))
        blocks = (blocks + 1) / 2 - 1;
    return larger(blocks, first);
}

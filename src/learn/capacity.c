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

/* A burst is not told by chance: where each event is as likely to be of one kind as of the other,
 * one way of eight is as long as two stacks, four events of half a stack, and here two such ways
 * must follow each other, four times more often than not. */
static_assert(LAW_IN_A_ROW <= UINT8_MAX, "fits bursts and foreign_recent");

size_t capacity_turn(struct capacity_history *history, enum capacity_event event, size_t capacity)
{
    ASSERT(history->bursts < LAW_IN_A_ROW);
    bool full = event == STACK_FULL;
    if (history->full == full) {
        if (history->streak < UINT8_MAX)
            history->streak++;
        return 0;
    }
    size_t burst = smaller(history->way, history->before);
    history->full = full;
    history->streak = 1;
    history->before = history->way;
    history->way = 0;
    if (burst < 2 * capacity) {
        history->bursts -= history->bursts > 0;
        history->bursts_return = history->bursts_return && history->bursts > 0;
        return 0;
    }
    if (++history->bursts < LAW_IN_A_ROW)
        return 0;
    history->bursts = 0;
    history->bursts_return = true;
    return capacity + burst;
}

/* To so many blocks, which an array of whole size holds, or to half as many where that is too much,
 * and so on. */
static struct capacity grown(const struct capacity_seen *s, size_t blocks, size_t bytes,
                             enum capacity_reason why)
{
    for (; blocks + 1 >= ARRAY_LEAST && blocks > s->capacity; blocks = (blocks + 1) / 2 - 1)
        if (within(blocks, bytes, s))
            return (struct capacity){blocks, why};
    return (struct capacity){s->capacity, CAPACITY_FITS};
}

/* Lately, or ever since the thread began with the class. */
static bool passes(const struct capacity_seen *s)
{
    bool foreign = s->history.foreign_recent > 0 || s->history.before == 0;
    return capacity_passes(s->shared, foreign, s->history.streak);
}

/* Of small blocks a thread with others beside it has enough in a processor's cache. */
static size_t burst_bytes(const struct capacity_seen *s, size_t stack_bytes)
{
    size_t shared = larger(LAW_SHARE_LEAST, LAW_FREES_A_LOOK * s->size);
    return s->shared ? smaller(shared, stack_bytes) : stack_bytes;
}

/* Where blocks only pass through: of many threads, less. */
static size_t steady_bytes(const struct capacity_seen *s, size_t stack_bytes)
{
    size_t share = smaller(LAW_SHARE_LEAST / LAW_SMALL_PART, s->share.weight / LAW_TINY_PART);
    return smaller(share, stack_bytes);
}

static size_t most_bytes(const struct capacity_seen *s, size_t stack_bytes)
{
    size_t most = burst_bytes(s, stack_bytes);
    return passes(s) ? smaller(steady_bytes(s, stack_bytes), most) : most;
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
    /* Blocks of others, too, are best given back in batches: those of 15 blocks of 64 bytes took 3
     * times as long as of 512. */
    size_t steady = steady_bytes(s, stack_bytes);
    if (s->foreign && s->capacity * s->size > steady)
        return shrunk(s, steady / s->size, CAPACITY_FOREIGN);
    bool comes_back = s->history.bursts_return && s->history.way <= 2 * s->history.before &&
                      s->history.way < UINT16_MAX;
    if (s->drains && !s->foreign && !comes_back)
        return shrunk(s, larger(steady / s->size, ARRAY_LEAST - 1), CAPACITY_DRAINS);
    if (s->held > s->share.bytes || s->weight > s->share.weight)
        return shrunk(s, s->capacity / 2, CAPACITY_SHARE);
    if (s->foreign && capacity_again(&s->history))
        return grown(s, capacity_round(2 * s->capacity + 1), steady, CAPACITY_OVERFLOWS);
    if (s->foreign)
        return (struct capacity){s->capacity, CAPACITY_FITS};
    if (s->burst > s->capacity)
        return grown(s, capacity_round(s->burst), burst_bytes(s, stack_bytes), CAPACITY_BURSTS);
    if (capacity_again(&s->history))
        return grown(s, capacity_round(2 * s->capacity + 1), most_bytes(s, stack_bytes),
                     s->event == STACK_EMPTY ? CAPACITY_MISSES : CAPACITY_OVERFLOWS);
    return (struct capacity){s->capacity, CAPACITY_FITS};
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

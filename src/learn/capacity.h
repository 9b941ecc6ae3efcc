/* How many blocks a thread keeps of one class: what a stack may hold, from what was seen of it.
 * Pure functions: no globals, no kernel.
 *
 * A capacity starts small. It doubles each time that the stack is empty or full, within what is
 * enough for a processor's cache and within the thread's share, and less where blocks may only pass
 * through. It shrinks if the blocks are other threads', if the thread only frees, if all threads'
 * shares have become smaller, and as stacks grow older (front/large.h). */
#ifndef HAKMEM_LEARN_CAPACITY_H
#define HAKMEM_LEARN_CAPACITY_H

#include "base/defs.h"
#include "learn/laws.h"

enum capacity_event {
    STACK_EMPTY, /* the thread allocates, and there is none */
    STACK_FULL,  /* it frees, and there is no room */
};

/* How often in a row a stack was found empty, or full, after one more time: 0 before the first. One
 * that never turned counts as one that has been so for long. */
#define STREAK_LONG 3
static inline unsigned capacity_streak(unsigned before, bool turns)
{
    if (before == 0)
        return STREAK_LONG;
    return turns ? 1 : before + (before < STREAK_LONG);
}

/* Whether a thread that has flushed so much, beyond what it refilled, will not soon want it again:
 * it gives back some times over what its stacks could hold. */
static inline bool capacity_drains(size_t outflow, size_t capacity_bytes)
{
    return outflow > 2 * capacity_bytes;
}

/* Blocks that a refill or a flush moves: half a stack, so that as many calls of either kind can
 * follow; all of it where only calls of one kind do. But not so many that they leave a processor's
 * cache on the way. */
static inline size_t capacity_batch(size_t capacity, bool one_way)
{
    return smaller(one_way ? capacity : (capacity + 1) / 2, LAW_BATCH_MOST);
}

/* What a block counts of a thread's share: its bytes, but not more than so many. Each block that is
 * kept spares the same work; if bytes alone counted, classes of large blocks would be left with
 * none. */
static inline size_t capacity_weight(size_t size) { return smaller(size, 2 * LAW_SHARE_REFILL); }

/* What all stacks of a thread should hold at most. */
struct capacity_share {
    size_t bytes, weight;
};

struct capacity_seen {
    enum capacity_event event;
    bool shared;  /* there are other threads */
    bool foreign; /* what it frees is other threads' */
    bool passes;  /* blocks may only pass through: they are others', or it is only filled, or only
                     emptied; alone, a thread has nobody to pass them to */
    bool drains;  /* it frees more than its stacks together could use again */
    size_t size;  /* bytes of a block */
    size_t capacity; /* blocks, now */
    size_t first;    /* blocks, always kept */
    size_t held;     /* bytes that all stacks of the thread may hold */
    size_t weight;   /* the same, weighed */
    struct capacity_share share;
};

/* Why; the first means that nothing changes. */
enum capacity_reason {
    CAPACITY_FITS,
    CAPACITY_MISSES,
    CAPACITY_OVERFLOWS,
    CAPACITY_FOREIGN,
    CAPACITY_DRAINS,
    CAPACITY_SHARE,
    CAPACITY_AGED,
    CAPACITY_REASONS
};

struct capacity {
    size_t blocks;
    enum capacity_reason why;
};

/* `stack_bytes`: the option, here and below. */
struct capacity capacity_step(const struct capacity_seen *seen, size_t stack_bytes);

/* What a stack holds where nothing is learned. */
size_t capacity_fixed(size_t size, size_t first, size_t stack_bytes);

/* Stacks lie in arrays of 10 * 2^n words, of which one is the mark: as many blocks as fit into the
 * one that holds `blocks`. */
#define ARRAY_LEAST 10
#define ARRAY_KINDS 11
#define STACK_MOST (((size_t)ARRAY_LEAST << (ARRAY_KINDS - 1)) - 1)
static inline size_t capacity_round(size_t blocks)
{
    size_t words = ARRAY_LEAST;
    while (words <= blocks)
        words *= 2;
    return words - 1;
}

#endif

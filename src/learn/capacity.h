/* How many blocks a thread keeps of one class: what a stack may hold, from what was seen of it.
 * Pure functions: no globals, no kernel.
 *
 * A capacity starts small. It doubles if the stack is soon empty or full again, up to what is
 * enough for steady use; beyond that it grows only for bursts that come and go, and only if it can
 * then hold them. It shrinks if the blocks belong to other threads or are not needed again, if all
 * threads' shares have become smaller, and as stacks grow older (front/large.h). */
#ifndef HAKMEM_LEARN_CAPACITY_H
#define HAKMEM_LEARN_CAPACITY_H

#include "base/defs.h"
#include "learn/laws.h"

enum capacity_event {
    STACK_EMPTY, /* the thread allocates, and there is none */
    STACK_FULL,  /* it frees, and there is no room */
};

/* A way is what goes in one direction, between two turns. A thread that allocates much and then
 * frees it turns seldom, after long ways; one whose use goes up and down by chance turns at every
 * other event; and one that others' blocks pass through may never turn. */
struct capacity_history {
    uint16_t way,
        before;     /* blocks moved since the last turn, and between that and the one before */
    uint8_t streak; /* events since the last turn */
    uint8_t bursts; /* turns after two ways that the stack could not take in, less others */
    uint8_t foreign_recent; /* for so many events more it counts that others' blocks were seen */
    bool full : 1;          /* the way down: blocks are given back */
    bool bursts_return : 1; /* so many turns were seen that the next way up is as sure as this one
                               down */
};

/* Counts an event before anything is moved. Returns what the stack should have held, in blocks;
 * 0 as long as it is not shown that more would do. */
size_t capacity_turn(struct capacity_history *history, enum capacity_event event, size_t capacity);

/* Counts what was moved then. */
static inline void capacity_moved(struct capacity_history *history, size_t blocks, bool foreign)
{
    size_t way = history->way + blocks;
    history->way = (uint16_t)(way < UINT16_MAX ? way : UINT16_MAX);
    history->foreign_recent =
        foreign ? (int)LAW_IN_A_ROW : history->foreign_recent - (history->foreign_recent > 0);
}

/* Whether blocks may only pass through: others' were seen (`foreign`), or the stack was only filled
 * or only emptied for long. Alone, a thread has nobody to pass them to. */
static inline bool capacity_passes(bool shared, bool foreign, unsigned streak)
{
    return shared && (foreign || streak > 2);
}

/* Whether the event before was of this kind, too. */
static inline bool capacity_again(const struct capacity_history *history)
{
    return history->streak > 1;
}

/* Whether a thread that has flushed so much, beyond what it refilled, will not soon want it again:
 * it gives back some times over what its stacks could hold. */
static inline bool capacity_drains(size_t outflow, size_t capacity_bytes)
{
    return outflow > 2 * capacity_bytes;
}

/* Blocks that a refill or a flush moves: half a stack, so that as many calls of either kind can
 * follow. The first after a turn, a refill after flushes or a flush after refills, moves few:
 * otherwise a burst a little larger than a large stack would move half of that stack each time. */
static inline size_t capacity_batch(const struct capacity_history *history, size_t capacity)
{
    size_t half = (capacity + 1) / 2;
    return capacity_again(history) ? half : smaller(half, LAW_STACK_TURN_MOST);
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
    struct capacity_history history; /* this event counted */
    size_t burst;                    /* what capacity_turn returned then */
    bool shared;                     /* there are other threads */
    bool foreign;                    /* what it frees is other threads' */
    bool drains;                     /* it frees more than its stacks together could use again */
    size_t size;                     /* bytes of a block */
    size_t capacity;                 /* blocks, now */
    size_t first;                    /* blocks, always kept */
    size_t held;                     /* bytes that all stacks of the thread may hold */
    size_t weight;                   /* the same, weighed */
    struct capacity_share share;
};

/* Why; the first means that nothing changes. */
enum capacity_reason {
    CAPACITY_FITS,
    CAPACITY_MISSES,
    CAPACITY_OVERFLOWS,
    CAPACITY_BURSTS,
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

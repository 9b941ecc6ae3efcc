/* How many blocks a thread keeps of one class: the step from what was seen of its stack to what it
 * may hold. A pure function: no globals, no kernel. It starts small and doubles where the thread
 * comes back at once; it shrinks where the blocks are others' or are not wanted again, and where
 * all threads' shares have become smaller. */
#ifndef HAKMEM_LEARN_CAPACITY_H
#define HAKMEM_LEARN_CAPACITY_H

#include "base/defs.h"
#include "base/policy.h"

enum capacity_event {
    STACK_EMPTY, /* the thread allocates, and there is none */
    STACK_FULL,  /* it frees, and there is no room */
};

struct capacity_seen {
    enum capacity_event event;
    unsigned streak; /* such events in a row, this one included */
    bool foreign;    /* what it frees is other threads' */
    bool drains;     /* it frees more than its stacks together could use again */
    size_t size;     /* bytes of a block */
    size_t capacity; /* blocks, now */
    size_t first;    /* blocks, always kept */
    size_t held;     /* bytes that all stacks of the thread may hold */
    size_t share;    /* bytes that they should at most */
};

/* Why; the first means that nothing changes. */
enum capacity_reason {
    CAPACITY_FITS,
    CAPACITY_MISSES,
    CAPACITY_OVERFLOWS,
    CAPACITY_FOREIGN,
    CAPACITY_DRAINS,
    CAPACITY_SHARE,
    CAPACITY_REASONS
};

struct capacity {
    size_t blocks;
    enum capacity_reason why;
};

struct capacity capacity_step(const struct capacity_seen *seen, const struct policy *bounds);

/* What a stack holds where nothing is learned. */
size_t capacity_fixed(size_t size, size_t first, const struct policy *bounds);

/* Stacks lie in arrays of 10 * 2^n words, of which one is the mark: as many blocks as fit into the
 * one that holds `blocks`. */
#define ARRAY_LEAST 10
static inline size_t capacity_round(size_t blocks)
{
    size_t words = ARRAY_LEAST;
    while (words <= blocks)
        words *= 2;
    return words - 1;
}

#endif

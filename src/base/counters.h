/* What the allocator has done, in numbers that only grow. Lower layers add, higher ones read. The
 * sum of freed bytes is also the allocation clock: it measures how long memory was unused by what
 * the program did meanwhile, because there may be no timer. All in bytes, all atomic. */
#ifndef HAKMEM_BASE_COUNTERS_H
#define HAKMEM_BASE_COUNTERS_H

#include "base/atomic.h"
#include "base/defs.h"

struct purge_counters {
    size_t purged;    /* given back to the kernel */
    size_t refaulted; /* taken again since */
    size_t taken;     /* all that was taken, kept or not; of pages it isn't counted */
};

struct counters {
    size_t freed __attribute__((aligned(CACHE_LINE))); /* left the threads' stacks */
    size_t freed_slices; /* slices given back; written under the superslabs' lock */
    size_t freed_huge;   /* huge blocks; written under the big-block cache's lock */
    struct purge_counters pages __attribute__((aligned(CACHE_LINE))); /* inside slabs in use */
    struct purge_counters slices;                                     /* slices and superslabs */
    struct purge_counters huge;                                       /* mappings of huge blocks */
    size_t returning_ns; /* time spent on giving back, in the program's calls and beside them */
};

extern struct counters counters HIDDEN;

static inline size_t clock_now(void)
{
    return load_relaxed(&counters.freed) + load_relaxed(&counters.freed_slices) +
           load_relaxed(&counters.freed_huge);
}

static inline void clock_advance(size_t bytes) { add_relaxed(&counters.freed, bytes); }

/* All that went back, of any kind. */
static inline size_t counters_returned(void)
{
    return load_relaxed(&counters.pages.purged) + load_relaxed(&counters.slices.purged) +
           load_relaxed(&counters.huge.purged);
}

/* What was given back and is not yet taken again is owed; `bytes` are taken. */
static inline void count_refault(struct purge_counters *c, size_t bytes)
{
    size_t owed = load_relaxed(&c->purged) - load_relaxed(&c->refaulted);
    if (owed != 0)
        add_relaxed(&c->refaulted, bytes < owed ? bytes : owed);
}

#endif

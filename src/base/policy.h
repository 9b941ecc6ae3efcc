/* What the whole process has one of: the options' values, what of the heap is hardened, why calls
 * take the slow path, and the counters. */
#ifndef HAKMEM_BASE_POLICY_H
#define HAKMEM_BASE_POLICY_H

#include "base/atomic.h"
#include "base/defs.h"

/* The numbers that the rest reads, made from the table of options. options/ writes them before the
 * first cache exists. Those that change later (life/settings.c) are atomic. Sizes in
 * bytes, switches 0 or 1. */
struct policy {
#define OPTION(name, type, value, least, most, help) size_t name;
#include "base/options.def"
};

extern struct policy policy HIDDEN;

/* Of the options stats_file, profile_file and record. */
#define PATH_OPTION_MOST 1024
extern char stats_path[PATH_OPTION_MOST] HIDDEN;
extern char profile_path[PATH_OPTION_MOST] HIDDEN;
extern char record_path[PATH_OPTION_MOST] HIDDEN;

/* In place of a number: hakmem finds it out. Only an option whose default it is can be so. */
#define AUTO SIZE_MAX

static inline size_t unless_auto(size_t set, size_t otherwise)
{
    return set == AUTO ? otherwise : set;
}

/* The most of keep_bytes, more than there can be: then nothing goes back because it lies idle. */
#define KEEP_ALL (1024 * GiB)

/* ---- hardening ----
 *
 * What of the heap is hardened. Constant after the process's start (heap/hardening.h), which a
 * thread that has looked for its cache has seen; who has not may ask hardened() alone. */

struct hardening {
    size_t canary;  /* bytes of one: 8, or 0 where the blocks of classes are not hardened */
    bool zeroes;    /* free memory of classes is zero, and larger blocks are handed out as zeroes */
    bool shuffles;  /* blocks of classes are taken in random order */
    bool any_place; /* not just any free block of a slab is handed out next: `shuffles`, or there
                       are guard pages */
    bool guards;    /* blocks without a class lie between inaccessible pages, and for a time after
                       they were freed they are inaccessible, or zero */
    bool marks;     /* with `guards`: the kernel marks pages so that nobody can touch them
                       (os_guard_runs) */
    bool sizes;     /* sized frees are checked */
    bool functions; /* which function frees is checked; only where blocks of classes have canaries
                       and others guards */
    size_t held;    /* bytes of freed blocks of a class that a thread holds back */
    uint64_t secret, factor; /* of the canaries */
};
extern struct hardening hardening HIDDEN;

FAST bool hardened(void) { return unlikely(load_relaxed(&hardening.canary) != 0); }

/* ---- closings ----
 *
 * Why calls take the slow path though a stack could serve them. Each reason has one owner, who sets
 * it and takes it away; a fast path is closed while there is one that closes it, and
 * front/cache.h is the one place that closes and opens. */

enum closing {
    /* Of all caches. */
    CLOSED_CHECKED = 1 << 0,  /* each wrong free is to be seen at once: life/purge.c */
    CLOSED_RECORDED = 1 << 1, /* a recording has each call: life/recording.c */
    CLOSED_PROFILED = 1 << 2, /* a profile counts what is allocated: life/profiling.c */
    CLOSED_GUARDS = 1 << 3,   /* a block that comes is to be guarded: life/profiling.c */
    CLOSED_SIZES = 1 << 4,    /* the size that free gets is checked: the start */
    CLOSED_HARDENED = 1 << 5, /* blocks of classes lie elsewhere: the start */
    CLOSED_ORDERED = 1 << 6,  /* another process gave an order: it, and life/settings.c */
    /* Of one. */
    CLOSED_RESTS = 1 << 7,  /* its thread gave back nearly all: front/refill.c */
    CLOSED_VISITS = 1 << 8, /* there is more to give back to the kernel: api/door.c */
};

/* What they close: malloc, and of these reasons the second set also what was taken ahead
 * (front/stacks.h); free and realloc of blocks of classes; the quick way of whole slices through
 * free's slow path; and all of it, by taking caches from their threads. */
#define CLOSE_TAKING (CLOSED_RECORDED | CLOSED_PROFILED | CLOSED_GUARDS)
#define CLOSE_AHEAD CLOSED_RECORDED
#define CLOSE_GIVING                                                                    \
    (CLOSED_RECORDED | CLOSED_SIZES | CLOSED_HARDENED | CLOSED_ORDERED | CLOSED_RESTS | \
     CLOSED_VISITS)
#define CLOSE_WHOLE (CLOSED_RECORDED | CLOSED_RESTS | CLOSED_VISITS)
#define CLOSE_CACHES CLOSED_CHECKED

/* Of one cache: stacks that are not begun have no room, and stay as they are. */
#define CLOSE_BEGUN (CLOSED_RESTS | CLOSED_VISITS)

extern unsigned closings HIDDEN; /* those of all caches but CLOSED_ORDERED; atomic */

/* Whether one of these is there. */
static inline bool closed_for(unsigned reasons) { return (load_acquire(&closings) & reasons) != 0; }

/* ---- counters ----
 *
 * What the allocator has done, in numbers that only grow. Lower layers add, higher ones read. The
 * sum of freed bytes is also the allocation clock: it measures how long memory was unused by what
 * the program did meanwhile, because there may be no timer. All in bytes, all atomic. */

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

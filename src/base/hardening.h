/* What of the heap is hardened. Constant after the process's start (heap/hardened.h), which a
 * thread that has looked for its cache has seen; whoever has not may ask hardened() alone. */
#ifndef HAKMEM_BASE_HARDENING_H
#define HAKMEM_BASE_HARDENING_H

#include "base/atomic.h"
#include "base/defs.h"

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

#endif

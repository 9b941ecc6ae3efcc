/* Why calls take the slow path though a stack could serve them. Each reason has one owner, who sets
 * it and takes it away; a fast path is closed while there is one that closes it, and
 * front/closing.h is the one place that closes and opens. */
#ifndef HAKMEM_BASE_CLOSINGS_H
#define HAKMEM_BASE_CLOSINGS_H

#include "base/atomic.h"

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
    CLOSED_VISITS = 1 << 8, /* there is more to give back to the kernel: life/upkeep.c */
};

/* What they close: malloc, and of these reasons the second set also what was taken ahead (ahead.h);
 * free and realloc of blocks of classes; the quick way of whole slices through free's slow path;
 * and all of it, by taking caches from their threads. */
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

#endif

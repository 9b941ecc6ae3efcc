/* How long free memory keeps its pages: for an epoch of the allocation clock, which counts freed
 * bytes. Memory that was idle for an epoch goes back; if it is soon needed again, the epoch was too
 * short. A pure function: no globals, no kernel. */
#ifndef HAKMEM_LEARN_RETENTION_H
#define HAKMEM_LEARN_RETENTION_H

#include "base/counters.h"
#include "base/defs.h"

struct retention {
    size_t epoch;                /* bytes freed */
    struct purge_counters since; /* the counters when the epoch was last judged */
    unsigned steps;              /* epochs passed since */
};

#define RETENTION_GROWTH 4

/* One epoch has passed. If above 20% of what was given back, or of what was taken where that is
 * less, was taken again the epoch grows fourfold, up to `most`. It halves, down to `least`, if
 * after several epochs, in which at least as much was taken as went back, it was below 5%: while a
 * program only frees, nothing tells what it will want. Where nothing was given back there is
 * nothing to learn: a program in a steady state makes no system calls. */
void retention_step(struct retention *r, struct purge_counters now, size_t least, size_t most);

#endif

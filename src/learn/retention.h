/* How long free memory keeps its pages: for an epoch of the allocation clock, which counts freed
 * bytes. Memory that was idle for an epoch goes back; if it is soon needed again, the epoch was too
 * short. A pure function: no globals, no kernel. */
#ifndef HAKMEM_LEARN_RETENTION_H
#define HAKMEM_LEARN_RETENTION_H

#include "base/counters.h"
#include "base/defs.h"
#include "learn/laws.h"

struct retention {
    size_t epoch;                /* bytes freed */
    struct purge_counters since; /* the counters when the epoch was last judged */
    unsigned steps;              /* epochs passed since */
};

/* One epoch has passed. It grows, up to `most`, if more than a part of what was given back, or of
 * what was taken where that is less, was taken again (LAW_EPOCH_GROWS_ABOVE). It shrinks, down to
 * `least`, if after several epochs, in which at least as much was taken as went back, it was below
 * another part (LAW_EPOCH_GROWS_ABOVE * LAW_EPOCH_GROWTH): while a program only frees, nothing
 * tells what it will want. Where nothing was given back there is nothing to learn: a program in a
 * steady state makes no system calls. */
void retention_step(struct retention *r, struct purge_counters now, size_t least, size_t most);

/* Bytes freed until when it means anything that what goes back now is needed again: had the epoch
 * grown, it would have stayed so long. What comes back later would not, so it says nothing: a
 * program whose sizes shift would keep the pages of all its sizes. */
static inline size_t retention_soon(size_t epoch) { return epoch * LAW_EPOCH_GROWTH; }

#endif

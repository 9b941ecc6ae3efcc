/* Which sizes of blocks the sites of a heap profile hold: the samples by site and size, read from
 * outside. The process may allocate and free meanwhile: then some samples are missing, or count
 * twice. */
#ifndef HAKMEM_LOOK_SAMPLES_H
#define HAKMEM_LOOK_SAMPLES_H

#include "profile.h"
#include "sheet/heap.h"

/* Of one site and one size. */
struct held {
    uint64_t site, block; /* addresses; bytes */
    uint64_t samples;
    double blocks, variance; /* an estimate of how many there are */
};

/* Sorts them into memory that stays. False where there is none, or the tables make no sense. */
bool samples_read(struct target *t, const struct watch_profile *w);

/* The first one of a site, and how many there are. */
const struct held *samples_of(uint64_t site, size_t *count);

/* Adds the site's to its lines (struct profile_more):
 *
 *   # sizes BYTES:BLOCKS:VARIANCE:SAMPLES ...
 *
 * where the number of blocks is an estimate, and the variance that of its error. */
bool samples_add_sizes(struct profile_more *more, uint64_t site, struct text *t);

#endif

/* How much of the blocks in use the program asked for: the rest is rounding to size classes. Blocks
 * do not store it, but the samples of a heap profile do. So it is an estimate, which there is only
 * where blocks are sampled. */
#ifndef HAKMEM_SHEET_REQUESTED_H
#define HAKMEM_SHEET_REQUESTED_H

#include "profile/samples.h"
#include "sheet/tables.h"

struct requested {
    uint64_t samples;    /* 0: it is not known, nor are the others */
    double share, error; /* of the bytes of blocks in use; its standard error */
    double blocks;       /* bytes of all blocks that were sampled, or could have been */
};

struct requested requested_from(const struct fill *fill);

/* By the tables of a target. */
struct requested requested_read(struct target *t, const struct tables *tables);

/* A share of so many bytes. */
uint64_t requested_of(double share, uint64_t bytes);

#endif

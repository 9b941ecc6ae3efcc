/* How often the slow path looks for idle memory, and at what. Pure functions. */
#ifndef HAKMEM_LEARN_LOOKS_H
#define HAKMEM_LEARN_LOOKS_H

#include "learn/laws.h"

/* Bytes from one look to the next, of an epoch. */
static inline size_t look_step(size_t epoch)
{
    return smaller(epoch / LAW_LOOKS_IN_EPOCH, LAW_LOOK_MOST);
}

/* Bytes to the next look, where a step is so long and the last look came `overdue` bytes too late;
 * `huge`: by the free of a huge block. Of these each is more than a step, and a look takes longer
 * than all the rest of such a free, so some come together. `headroom`: bytes before a number that
 * an option set is passed. */
static inline size_t look_distance(size_t step, bool huge, size_t overdue, size_t headroom)
{
    size_t frees = huge ? LAW_LOOK_FREES_HUGE * smaller(overdue, LAW_LOOK_FREE_HUGE_MOST) : 0;
    return smaller(larger(step, frees), larger(headroom, LAW_LITTLE));
}

/* Whether a sparse slab is worth a look: so many blocks were freed since the last one, and so many
 * are still taken. Near the end each block counts: with nine tenths of blocks of 512 bytes free at
 * random, one of 64 more brings a page of 16. */
static inline bool look_at_slab(unsigned freed, unsigned taken)
{
    return freed * LAW_SPARSE_PART >= taken;
}

#endif

/* How often the slow path looks for idle memory, and at what. Pure functions. */
#ifndef HAKMEM_LEARN_LOOKS_H
#define HAKMEM_LEARN_LOOKS_H

#include "learn/laws.h"

/* Bytes from one look to the next, of an epoch. */
static inline size_t look_step(size_t epoch)
{
    return smaller(epoch / LAW_SMALL_PART, LAW_LOOK_MOST);
}

/* Bytes to the next look, where a step is so long; `huge`: after the free of a huge block. Of these
 * each may be more than a step, and a look takes longer than all the rest of such a free.
 * `headroom`: bytes before a number that an option set is passed. */
static inline size_t look_distance(size_t step, bool huge, size_t headroom)
{
    return smaller(huge ? LAW_LOOK_MOST : step, larger(headroom, LAW_LITTLE));
}

/* Whether a sparse slab is worth a look: so many blocks were freed since the last one, and so many
 * are still taken. Near the end each block counts: with nine tenths of blocks of 512 bytes free at
 * random, one of 64 more brings a page of 16. */
static inline bool look_at_slab(unsigned freed, unsigned taken, bool thin)
{
    return freed * (thin ? LAW_CLEARLY : LAW_SMALL_PART) >= taken;
}

#endif

/* Random numbers: SplitMix64 of Steele, Lea and Flood, 2014. A state grows by MIXED_STEP for each
 * number, and the number is the state, mixed. */
#ifndef HAKMEM_BASE_MIXED_H
#define HAKMEM_BASE_MIXED_H

#include "base/defs.h"

#define MIXED_STEP 0x9e3779b97f4a7c15u /* 2^64 / the golden ratio: steps that never repeat */

static inline uint64_t mixed(uint64_t x)
{
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

#endif

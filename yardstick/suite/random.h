/*
 * Random numbers for the loops: one xorshift step gives 64 bits, of which the
 * low half picks a slot and the high half a size. A step is six instructions
 * that don't depend on memory, so the processor runs it ahead of the call that
 * is being measured.
 */
#ifndef SUITE_RANDOM_H
#define SUITE_RANDOM_H

#include <stdint.h>

struct random {
    uint64_t state; /* never 0 */
};

/* Spreads neighbouring seeds (0, 1, 2, ...) over all 64 bits. */
static inline struct random random_start(uint64_t seed, uint64_t stream)
{
    uint64_t x = seed + (stream + 1) * UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    x ^= x >> 31;
    return (struct random){.state = x != 0 ? x : 1};
}

static inline uint64_t random_next(struct random *r)
{
    uint64_t x = r->state;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    r->state = x;
    return x;
}

/* Uniform in 0..bound-1, bound below 2^32; by multiplication, since a
 * division would cost as much as a malloc. */
static inline uint64_t random_low(uint64_t bits, uint64_t bound)
{
    return ((bits & UINT32_MAX) * bound) >> 32;
}

static inline uint64_t random_high(uint64_t bits, uint64_t bound)
{
    return ((bits >> 32) * bound) >> 32;
}

#endif

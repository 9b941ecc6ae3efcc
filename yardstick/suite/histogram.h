/*
 * How often something took how long. Buckets are as wide as the 64th part of the power of two below
 * them, so what is read from the middle of one is off by 0.8% at most; up to 127 it is exact.
 * 9 KiB, of which a loop of fast calls touches a few lines.
 */
#ifndef SUITE_HISTOGRAM_H
#define SUITE_HISTOGRAM_H

#include <stdint.h>

enum {
    HISTOGRAM_BITS = 6,
    HISTOGRAM_STEPS = 1 << HISTOGRAM_BITS, /* buckets of an octave */
    HISTOGRAM_OCTAVES = 34,                /* to 2^40: 18 minutes, in nanoseconds */
    HISTOGRAM_BUCKETS = HISTOGRAM_STEPS * (HISTOGRAM_OCTAVES + 1),
};

struct histogram {
    _Alignas(128) uint64_t count; /* two cache lines: each thread has its own */
    uint64_t worst;               /* exact */
    uint32_t bucket[HISTOGRAM_BUCKETS];
};

static inline unsigned histogram_bucket(uint64_t value)
{
    if (value < HISTOGRAM_STEPS)
        return (unsigned)value;
    const unsigned octave = 63u - (unsigned)__builtin_clzll(value) - HISTOGRAM_BITS;
    if (octave >= HISTOGRAM_OCTAVES)
        return HISTOGRAM_BUCKETS - 1;
    return HISTOGRAM_STEPS * octave + (unsigned)(value >> octave);
}

static inline uint64_t histogram_middle(unsigned bucket)
{
    if (bucket < HISTOGRAM_STEPS)
        return bucket;
    const unsigned octave = bucket / HISTOGRAM_STEPS - 1;
    const uint64_t low = (uint64_t)(HISTOGRAM_STEPS + bucket % HISTOGRAM_STEPS) << octave;
    return low + ((UINT64_C(1) << octave) - 1) / 2;
}

static inline void histogram_add(struct histogram *h, uint64_t value)
{
    h->count++;
    h->bucket[histogram_bucket(value)]++;
    if (value > h->worst)
        h->worst = value;
}

static inline void histogram_merge(struct histogram *to, const struct histogram *from)
{
    to->count += from->count;
    if (from->worst > to->worst)
        to->worst = from->worst;
    for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++)
        to->bucket[i] += from->bucket[i];
}

/* The least value that `share` of all do not exceed: the worst of all, if that is 1; 0 of none. */
static inline uint64_t histogram_quantile(const struct histogram *h, double share)
{
    const double wanted = share * (double)h->count;
    uint64_t seen = 0;
    if (share >= 1)
        return h->worst;
    for (unsigned i = 0; i < HISTOGRAM_BUCKETS - 1; i++) {
        seen += h->bucket[i];
        if (seen > 0 && (double)seen >= wanted)
            return histogram_middle(i) < h->worst ? histogram_middle(i) : h->worst;
    }
    return h->worst;
}

#endif

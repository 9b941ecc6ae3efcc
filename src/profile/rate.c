#include "profile/rate.h"

#include "base/atomic.h"
#include "base/defs.h"
#include "base/policy.h"

/* While a guarded block is wanted, bytes allocated until it is taken, on average. A guarded block
 * costs about 85 us in all, with this; other numbers were not measured. */
#define GUARDED_RATE (2 * KiB)

uint64_t rate_random(void)
{
    static uint64_t last;
    uint64_t here = (uintptr_t)&here; /* the kernel's choice of a stack: other in each process */
    return mixed(add_relaxed(&last, MIXED_STEP) + here);
}

/* Uniform in (0, 1). */
static double draw(uint64_t *random)
{
    *random += MIXED_STEP;
    return ((double)(mixed(*random) >> 11) + 0.5) * 0x1p-53;
}

/* The natural logarithm of x, from 0 to 1: by its exponent, and a series in (m - 1) / (m + 1),
 * where m is from 1 to 2. To 10 digits. */
static double logarithm(double x)
{
    union {
        double number;
        uint64_t bits;
    } v = {x};
    int exponent = (int)(v.bits >> 52) - 1023;
    v.bits = (v.bits & low_bits(52)) | (uint64_t)1023 << 52;
    double t = (v.number - 1) / (v.number + 1);
    double square = t * t;
    double sum = 0;
    for (int k = 17; k >= 1; k -= 2)
        sum = sum * square + 1.0 / k;
    return exponent * 0.69314718055994530942 + 2 * t * sum;
}

/* exp(x) - 1 for x from -1/4 to 0. */
static double exponential_less_1(double x)
{
    double sum = 0;
    for (int k = 11; k >= 1; k--)
        sum = (sum + 1) * x / k;
    return sum;
}

/* 1 - exp(-x) for x from 0 on: e(2x) = e(x) (2 - e(x)). */
static double chance(double x)
{
    if (x > 40)
        return 1;
    unsigned doublings = 0;
    while (x > 0.25) {
        x /= 2;
        doublings++;
    }
    double e = -exponential_less_1(-x);
    for (; doublings > 0; doublings--)
        e *= 2 - e;
    return e;
}

uint32_t rate_gap(uint64_t *random, size_t bytes, size_t rate)
{
    if (rate <= RATE_EVERY)
        return 1;
    double gap = -logarithm(draw(random)) * (double)rate / (double)bytes;
    return gap < GAP_MOST ? (uint32_t)gap + 1 : GAP_MOST + 1;
}

double rate_weight(size_t bytes, size_t rate)
{
    return rate <= RATE_EVERY ? 1 : 1 / chance((double)bytes / (double)rate);
}

/* ---- pace ---- */

#define STEPS_A_SECOND 10
#define FRAMES_A_SAMPLE 8 /* each so many take about as long as a sample without any */
#define DOUBLINGS_MOST 20

static struct {
    unsigned doublings; /* of the rate; atomic, as are both that follow */
    size_t samples;     /* of this step; one with a deep stack counts as several */
    size_t since;       /* its begin, in milliseconds */
} pace;

size_t rate_now(void)
{
    if (!closed_for(CLOSED_PROFILED))
        return GUARDED_RATE;
    size_t rate = load_relaxed(&policy.profile_rate) << load_relaxed(&pace.doublings);
    return smaller(rate, GiB);
}

/* Threads that come together may count a step too much or too little, which the next one sets
 * right. */
static void follow(size_t samples, size_t now)
{
    size_t most = load_relaxed(&policy.profile_samples); /* a second */
    size_t steps = (now - load_relaxed(&pace.since)) * STEPS_A_SECOND / 1000;
    unsigned doublings = load_relaxed(&pace.doublings);
    bool many = samples > 1 + most * (steps + 1) / STEPS_A_SECOND;
    if (most == 0 || (!many && steps == 0))
        return;
    if (many)
        doublings += doublings < DOUBLINGS_MOST;
    else if (samples < 1 + most * steps / STEPS_A_SECOND / 4)
        doublings -= (unsigned)smaller(doublings, steps);
    store_relaxed(&pace.doublings, doublings);
    store_relaxed(&pace.samples, 0);
    store_relaxed(&pace.since, now);
}

void rate_count(size_t now, size_t depth)
{
    size_t as_many = 1 + depth / FRAMES_A_SAMPLE;
    follow(add_relaxed(&pace.samples, as_many) + as_many - 1, now);
}
void rate_look(size_t now) { follow(load_relaxed(&pace.samples), now); }

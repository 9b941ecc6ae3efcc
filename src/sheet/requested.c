#include "sheet/requested.h"

/* With fewer an error can't be estimated. */
#define SAMPLES_LEAST 2
#define ROUNDING 1e-6    /* of sums that samples are added to and taken from */
#define NUMBER_MOST 1e40 /* another process's memory may hold any number, or none */

static bool possible(double x) { return x > -NUMBER_MOST && x < NUMBER_MOST; }

/* Of a number from 0 to 1e80. */
static double root(double x)
{
    double r = x > 1 ? x : 1;
    for (unsigned i = 0; i < 200; i++)
        r = (r + x / r) / 2;
    return r;
}

/* A ratio of two sums, each of which estimates a sum over all blocks by those that are in the
 * sample: block i with the chance 1/w. To the first order the ratio's variance is that of the sum
 * of w (n - share b), divided by the square of the lower sum; and the variance of a sum of w d is
 * estimated by that of w (w - 1) d d (Horvitz and Thompson, 1952). */
static double error_of(const struct fill *fill, double share)
{
    double sum = fill->nn - 2 * share * fill->nb + share * share * fill->bb;
    double samples = (double)fill->samples;
    double variance = sum / fill->blocks / fill->blocks * samples / (samples - 1);
    return variance > 0 ? root(variance) : 0;
}

struct requested requested_from(const struct fill *fill)
{
    const struct requested unknown = {0};
    if (fill->samples < SAMPLES_LEAST || !possible(fill->requested) || !possible(fill->blocks) ||
        !possible(fill->nn) || !possible(fill->nb) || !possible(fill->bb) || fill->blocks < 1 ||
        fill->requested < 0 || fill->requested > fill->blocks * (1 + ROUNDING))
        return unknown;
    double share = fill->requested < fill->blocks ? fill->requested / fill->blocks : 1;
    double error = error_of(fill, share);
    return (struct requested){fill->samples, share, error < 1 ? error : 1, fill->blocks};
}

struct requested requested_read(struct target *t, const struct tables *tables)
{
    uint64_t at = (uint64_t)(uintptr_t)tables->profile.fill;
    struct fill fill;
    if (at == 0 || !target_read(t, at, &fill, sizeof fill))
        return (struct requested){0};
    return requested_from(&fill);
}

uint64_t requested_of(double share, uint64_t bytes)
{
    return (uint64_t)(share * (double)bytes + 0.5);
}

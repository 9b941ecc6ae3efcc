/* Quantiles of the suite's histogram beside those of the sorted values themselves. */
#include "histogram.h"
#include "random.h"

#include <stdio.h>
#include <stdlib.h>

enum { COUNT = 20001 };

static int failures;

static void expect(const char *what, uint64_t got, uint64_t wanted)
{
    const uint64_t off = got > wanted ? got - wanted : wanted - got;
    if ((double)off <= 0.008 * (double)wanted)
        return;
    printf("%s: %ju, not %ju\n", what, (uintmax_t)got, (uintmax_t)wanted);
    failures++;
}

static int compare(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

int main(void)
{
    static struct histogram whole, half, none;
    static uint64_t value[COUNT];
    struct random rng = random_start(1, 0);
    for (unsigned i = 0; i < COUNT; i++) {
        /* As many of each octave. */
        value[i] = random_next(&rng) >> (24 + i % 40);
        histogram_add(i % 2 == 0 ? &whole : &half, value[i]);
    }
    histogram_merge(&whole, &half);
    qsort(value, COUNT, sizeof *value, compare);

    expect("count", whole.count, COUNT);
    if (whole.worst != value[COUNT - 1] || histogram_quantile(&whole, 1) != whole.worst)
        expect("the worst, exactly", 0, value[COUNT - 1]);
    static const double shares[] = {0.001, 0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 0.999};
    for (unsigned i = 0; i < sizeof shares / sizeof *shares; i++) {
        char what[32];
        snprintf(what, sizeof what, "quantile %g", shares[i]);
        /* The 0.99 of 20,001 values is the 19,801st: counted from 0, that of index 19,800. */
        expect(what, histogram_quantile(&whole, shares[i]), value[(unsigned)(shares[i] * COUNT)]);
    }
    expect("none", histogram_quantile(&none, 0.5), 0);

    for (unsigned i = 1; i < 128; i++)
        if (histogram_middle(histogram_bucket(i)) != i)
            expect("a small value, exactly", 0, i);
    /* Beyond the last bucket. */
    histogram_add(&none, UINT64_C(1) << 50);
    expect("the largest", histogram_quantile(&none, 0.5), UINT64_C(1) << 50);
    return failures > 0;
}

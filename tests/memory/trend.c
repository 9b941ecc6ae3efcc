#include "trend.h"

#include "support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double trend_print(const char *name, const double *values, size_t count, size_t period)
{
    double *slopes = pages_from_kernel(count * count / 2 * sizeof *slopes), variance = 0;
    size_t pairs = 0;
    for (size_t i = 0; i < count; i++)
        for (size_t j = i + period; j < count; j += period)
            slopes[pairs++] = (values[j] - values[i]) / (double)(j - i);
    for (size_t season = 0; season < period; season++) {
        double n = (double)((count - season + period - 1) / period);
        variance += n * (n - 1) * (2 * n + 5) / 18;
    }
    qsort(slopes, pairs, sizeof *slopes, ascending);
    size_t aside = (size_t)fmin((double)(pairs - 1) / 2, ceil(sqrt(variance) / 2));
    double first = 0, last = 0;
    for (size_t i = 0; i < period; i++) {
        first += values[i] / (double)period;
        last += values[count - 1 - i] / (double)period;
    }
    double slope = (slopes[(pairs - 1) / 2] + slopes[pairs / 2]) / 2;
    double error = (slopes[pairs / 2 + aside] - slopes[(pairs - 1) / 2 - aside]) / 2;
    printf("%-16s first %.4f  last %.4f  slope per cycle %+.6f, standard error %.6f\n", name, first,
           last, slope, error);
    return slope * (double)(count - period) / first;
}

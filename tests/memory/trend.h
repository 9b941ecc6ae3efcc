/* Whether figures that come one after another rise. */
#ifndef HAKMEM_TESTS_TREND_H
#define HAKMEM_TESTS_TREND_H

#include <stddef.h>

/* Prints a line: the mean of the first `period` values and of the last, and the slope of each step.
 * The slope is the median of the slopes between all values that are a multiple of `period` apart
 * (Sen's slope, seasonal), its standard error the one of Kendall's test. A few outliers change
 * neither. Returns by how much values with this slope rise between the first `period` and the last,
 * as a part of the first. `count` is at least twice `period`. */
double trend_print(const char *name, const double *values, size_t count, size_t period);

#endif

/* Stress: many threads, all sizes, bursts, streams. */
#include "suite.h"

const struct row stress_rows[] = {
    {0},
};

/* Across threads: blocks handed over, shared, false sharing, 1 to 64 threads. */
#include "suite.h"

const struct row threads_rows[] = {
    {0},
};

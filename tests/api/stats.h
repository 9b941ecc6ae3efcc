/* hakmem's own figures of the heap. */
#ifndef HAKMEM_TESTS_STATS_H
#define HAKMEM_TESTS_STATS_H

#include <hakmem/hakmem.h>

static inline struct hakmem_stats stats_now(void)
{
    struct hakmem_stats stats;
    hakmem_stats(&stats, sizeof stats);
    return stats;
}

#endif

/*
 * Preloaded where work is counted: a clock that stands still. Under valgrind a
 * program runs some fifty times slower, on a busy machine slower yet, and an
 * allocator that looks at the time of day (to give back what lay idle for a
 * second) does more or less of it for no other reason. With this, counts
 * repeat on any machine.
 */
#include "kernel_clock.h"

int clock_gettime(clockid_t clock, struct timespec *now)
{
    (void)clock;
    *now = (struct timespec){.tv_sec = 1000};
    return 0;
}

int kernel_clock(clockid_t clock, struct timespec *now) { return clock_gettime(clock, now); }

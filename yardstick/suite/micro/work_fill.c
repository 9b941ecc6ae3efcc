/* A large heap of one size, filled and freed again and again: the first round finds no memory, the
 * next ones find what the allocator has kept. */
#include "block.h"
#include "work.h"

#include <time.h>

static double nanoseconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return 1e9 * (double)now.tv_sec + (double)now.tv_nsec;
}

static ALWAYS_INLINE void round_run(void **slot, const struct params *p, bool check)
{
    for (uint64_t i = 0; i < p->slots; i++)
        slot[i] = block_make(p->min, TOUCH_FIRST, check);
    for (uint64_t i = 0; i < p->slots; i++)
        block_drop(slot[i], p, check);
}

void work_fill_free(const struct params *p, struct outcome *out)
{
    /* Written before the clock starts: page faults of the table are not the allocator's. */
    void **slot = own_memory(p->slots * sizeof *slot);
    memset(slot, 0, p->slots * sizeof *slot);
    KEEP(slot);

    clock_start();
    const double begin = nanoseconds_now();
    double first = 0;
    for (uint64_t i = 0; i < p->iterations; i++) {
        if (p->check)
            round_run(slot, p, true);
        else
            round_run(slot, p, false);
        if (i == 0)
            first = nanoseconds_now() - begin;
    }
    clock_stop(out);

    outcome_add(out, "first-round", "ns", first / (2 * (double)p->slots));
    out->operations = 2 * p->iterations * p->slots;
    out->checksum = p->iterations * p->slots * p->min;
    own_release(slot, p->slots * sizeof *slot);
}

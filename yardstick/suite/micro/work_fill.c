/* A large heap of one size, filled and freed again and again: the first round finds no memory, the
 * next ones find what the allocator has kept. */
#include "block.h"
#include "work.h"

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
    const uint64_t begin = clock_now();
    uint64_t first = 0;
    for (uint64_t i = 0; i < p->iterations; i++) {
        if (p->check)
            round_run(slot, p, true);
        else
            round_run(slot, p, false);
        if (i == 0)
            first = clock_now() - begin;
    }
    clock_stop(out);

    outcome_add(out, "first-round", "ns", (double)first / (2 * (double)p->slots));
    out->operations = 2 * p->iterations * p->slots;
    out->checksum = p->iterations * p->slots * p->min;
    own_release(slot, p->slots * sizeof *slot);
}

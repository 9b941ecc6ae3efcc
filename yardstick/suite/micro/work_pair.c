/* Pairs of malloc and free that write to the block, and a free of nothing. */
#include "block.h"
#include "work.h"

static ALWAYS_INLINE void pair_loop(const struct params *p, enum touch touch, bool check)
{
    const size_t size = p->min;
    for (uint64_t i = 0; i < p->iterations; i++)
        block_drop(block_make(size, touch, check), p, check);
}

void work_pair_touched(const struct params *p, struct outcome *out)
{
    clock_start();
    SPECIALISE(pair_loop, p, p);
    clock_stop(out);
    out->operations = 2 * p->iterations;
    out->checksum = p->iterations * p->min;
}

void work_free_null(const struct params *p, struct outcome *out)
{
    void *nothing = NULL;
    clock_start();
    for (uint64_t i = 0; i < p->iterations; i++) {
        __asm__ volatile("" : "+r"(nothing)); /* not known to be null: the call stays */
        free(nothing);
    }
    clock_stop(out);
    out->operations = p->iterations;
    out->checksum = p->iterations;
}

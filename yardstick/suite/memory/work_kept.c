/*
 * What an allocator keeps of freed memory, where constants are too small or too large: large blocks
 * that come and go in a large heap, and a heap that is one large block by turns.
 */
#include "memory.h"

static void *drawn_make(const struct params *p, struct random *rng, uint64_t *sum)
{
    size_t size = size_next(p, rng);
    *sum += size;
    return filled_make(size);
}

/* The first filling is in the measured part: all allocators have some page faults, and ratios of
 * them are finite. */
void work_kept(const struct params *p, struct outcome *out)
{
    void **slot = own_touched(p->slots * sizeof *slot);
    struct random rng = random_start(p->seed, 0);

    clock_start();
    for (uint64_t i = 0; i < p->slots; i++)
        slot[i] = drawn_make(p, &rng, &out->checksum);
    for (uint64_t i = 0; i < p->iterations; i++) {
        void **s = &slot[random_low(random_next(&rng), p->slots)];
        filled_drop(*s, p);
        *s = drawn_make(p, &rng, &out->checksum);
    }
    clock_stop(out);

    out->operations = p->slots + 2 * p->iterations;
    for (uint64_t i = 0; i < p->slots; i++)
        filled_drop(slot[i], p);
    own_release(slot, p->slots * sizeof *slot);
}

void work_two_phases(const struct params *p, struct outcome *out)
{
    void **small = own_touched(p->slots * sizeof *small);

    clock_start();
    for (uint64_t i = 0; i < p->iterations; i++) {
        out->checksum += filled_drop(filled_make(p->max), p);
        for (uint64_t k = 0; k < p->slots; k++)
            small[k] = filled_make(p->min);
        for (uint64_t k = 0; k < p->slots; k++)
            out->checksum += filled_drop(small[k], p);
    }
    clock_stop(out);

    out->operations = 2 * p->iterations * (1 + p->slots);
    own_release(small, p->slots * sizeof *small);
}

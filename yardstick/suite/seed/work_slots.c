/*
 * Rows of one thread in which blocks live for a random while, or not at all:
 * pairs, random mixed, replacement.
 */
#include "loops.h"

/* Sizes drawn in advance: a pair takes few cycles, and a generator in the loop
 * would be a good part of them. Few enough to stay in the first-level cache. */
enum { DRAWN = 2048 };

void work_pair(const struct params *p, struct outcome *out)
{
    const size_t size = p->min;
    clock_start();
    for (uint64_t i = 0; i < p->iterations; i++) {
        void *block = malloc(size);
        KEEP(block);
        free(block);
    }
    clock_stop(out);
    out->operations = 2 * p->iterations;
    out->checksum = p->iterations * size;
}

static ALWAYS_INLINE void pair_random_loop(const struct params *p, const uint32_t *drawn,
                                           bool check)
{
    for (uint64_t i = 0; i < p->iterations; i++) {
        size_t size = drawn[i % DRAWN];
        void *block = malloc(size);
        KEEP(block);
        if (check) {
            block_stamp(block, size, p->touch);
            KEEP(block);
            block_verify(block, p);
        }
        free(block);
    }
}

void work_pair_random(const struct params *p, struct outcome *out)
{
    uint32_t *drawn = own_memory(DRAWN * sizeof *drawn);
    struct random rng = random_start(p->seed, 0);
    for (size_t i = 0; i < DRAWN; i++) {
        drawn[i] = (uint32_t)size_draw(random_next(&rng), p->min, params_span(p));
        out->checksum += drawn[i] * (p->iterations / DRAWN + (i < p->iterations % DRAWN));
    }

    clock_start();
    if (p->check)
        pair_random_loop(p, drawn, true);
    else
        pair_random_loop(p, drawn, false);
    clock_stop(out);
    out->operations = 2 * p->iterations;
    own_release(drawn, DRAWN * sizeof *drawn);
}

void work_mixed(const struct params *p, struct outcome *out)
{
    void **slot = own_memory(p->slots * sizeof *slot);
    struct random rng = random_start(p->seed, 0);

    clock_start();
    out->checksum = mixed_turns(slot, p, p->iterations, &rng);
    clock_stop(out);
    out->operations = p->iterations;
    slots_empty(slot, p);
    own_release(slot, p->slots * sizeof *slot);
}

void work_replace(const struct params *p, struct outcome *out)
{
    void **slot = own_memory(p->slots * sizeof *slot);
    struct random rng = random_start(p->seed, 0);
    uint64_t filled = slots_fill(slot, p, &rng);

    clock_start();
    out->checksum = filled + replace_turns(slot, p, p->iterations, &rng);
    clock_stop(out);
    out->operations = 2 * p->iterations;
    slots_empty(slot, p);
    own_release(slot, p->slots * sizeof *slot);
}

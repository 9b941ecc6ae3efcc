/*
 * Turnover: a heap is filled, all but one block in so many are freed at random, and then the
 * program goes on: those that stayed are replaced at random, by blocks of the same sizes. The clock
 * runs for the replacement. The ratio at its end tells whether the holes came to use.
 */
#include "memory.h"

void work_turnover(const struct params *p, struct outcome *out)
{
    struct random rng = random_start(p->seed, 0);
    const uint64_t count = blocks_needed(p, rng, p->iterations * 1024), kept = count / p->slots;
    void **block = own_touched(count * sizeof *block);
    uint32_t *order = own_permutation(count, p->seed);
    struct usage usage;
    usage_start(&usage);

    for (uint64_t i = 0; i < count; i++)
        block[order[i]] = filled_make(size_next(p, &rng));
    for (uint64_t i = kept; i < count; i++)
        filled_drop(block[i], p);

    clock_start();
    for (uint64_t i = 0; i < kept * p->batch; i++) {
        void **slot = &block[random_low(random_next(&rng), kept)];
        out->checksum += filled_drop(*slot, p);
        *slot = filled_make(size_next(p, &rng));
    }
    clock_stop(out);
    out->operations = 2 * kept * p->batch;

    uint64_t live = 0;
    for (uint64_t i = 0; i < kept; i++)
        live += filled_size(block[i]);
    outcome_add(out, "end-ratio", "ratio", (double)usage_rest(&usage) / (double)live);
    for (uint64_t i = 0; i < kept; i++)
        filled_drop(block[i], p);
    own_release(block, count * sizeof *block);
    own_release(order, count * sizeof *order);
}

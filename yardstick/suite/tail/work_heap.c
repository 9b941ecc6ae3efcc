/* Tails of one thread: random mixed, and random mixed while what was freed before goes back. */
#include "loops.h"
#include "tail.h"

/* A random slot: free what is in it, or else fill it. Gives the sum of the sizes. */
static uint64_t mixed_timed(void **slot, const struct params *p, uint64_t turns, struct random *rng,
                            struct timer *timer)
{
    uint64_t sum = 0;
    for (uint64_t i = 0; i < turns; i++) {
        const uint64_t bits = random_next(rng);
        void **s = &slot[random_low(bits, p->slots)];
        if (*s != NULL) {
            timed_drop(timer, *s, p);
            *s = NULL;
        } else {
            const size_t size = size_draw(bits, p->min, params_span(p));
            sum += size;
            *s = timed_make(timer, size, p);
        }
    }
    return sum;
}

/* ---- mixed */

void work_tail_mixed(const struct params *p, struct outcome *out)
{
    void **slot = own_memory(p->slots * sizeof *slot);
    struct timer *timer = timers_make(p);
    struct random rng = random_start(p->seed, 0);
    /* The process's first call makes the heap: the row start has that. */
    block_drop(block_make(p->min, TOUCH_FIRST, false), p, false);

    clock_start();
    timer_read(timer);
    out->checksum = mixed_timed(slot, p, p->iterations, &rng, timer);
    clock_stop(out);

    out->operations = p->iterations;
    timers_report(timer, p, out);
    slots_empty(slot, p);
    timers_release(timer, p);
    own_release(slot, p->slots * sizeof *slot);
}

/* ---- survivors */

/* Between the tenths of the mixed calls the program computes, 0.3 s in all: an allocator that gives
 * memory back by the clock, at the next call when some time has passed, would else have no time
 * for it. It computes rather than sleeps: after a sleep any call is slow. */
enum { PARTS = 10, COMPUTES_NS = 30000000, KEPT_ONE_OF = 10 };

static void compute(void)
{
    const uint64_t end = clock_now() + COMPUTES_NS;
    while (clock_now() < end)
        continue;
}

/* Gives how many were freed. */
static uint64_t most_drop(void **block, const uint32_t *order, const struct params *p,
                          struct timer *timer)
{
    const uint64_t freed = p->slots - p->slots / KEPT_ONE_OF;
    for (uint64_t i = 0; i < freed; i++) {
        timed_drop(timer, block[order[i]], p);
        block[order[i]] = NULL;
    }
    return freed;
}

void work_tail_survivors(const struct params *p, struct outcome *out)
{
    struct params few = *p; /* of the mixed calls */
    few.slots = p->batch;
    void **block = own_memory(p->slots * sizeof *block);
    void **slot = own_memory(few.slots * sizeof *slot);
    uint32_t *order = own_permutation(p->slots, p->seed);
    struct timer *timer = timers_make(p);
    struct random rng = random_start(p->seed, 0);
    out->checksum = slots_fill(block, p, &rng);

    clock_start();
    timer_read(timer);
    out->operations = p->iterations + most_drop(block, order, p, timer);
    for (uint64_t part = 0; part < PARTS; part++) {
        const uint64_t turns = p->iterations * (part + 1) / PARTS - p->iterations * part / PARTS;
        out->checksum += mixed_timed(slot, &few, turns, &rng, timer);
        compute();
        timer_read(timer); /* being away until now is no call's doing */
    }
    clock_stop(out);

    timers_report(timer, p, out);
    slots_empty(slot, &few);
    slots_empty(block, p);
    timers_release(timer, p);
    own_release(order, p->slots * sizeof *order);
    own_release(slot, few.slots * sizeof *slot);
    own_release(block, p->slots * sizeof *block);
}

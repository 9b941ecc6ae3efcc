/*
 * Bursts by threads that then die. Each of the row's lines of threads starts a
 * thread, waits for its end and starts the next, `iterations` times. A thread
 * frees what its predecessor left, allocates `slots` blocks, frees them again
 * in shuffled order, all but every `batch`th, and ends: what it leaves outlives
 * it and is freed by a thread that never allocated it. With a `batch` of 0 it
 * leaves nothing.
 */
#include "handover.h"
#include "loops.h"

struct line {
    const struct worker *owner;
    const uint32_t *turn; /* the same for all lines */
    void **slot;          /* of the thread that lives */
    struct random rng;
    uint64_t sum;
};

static bool stays(const struct params *p, uint64_t place)
{
    return p->batch > 0 && place % p->batch == 0;
}

/* Frees what one that has ended left behind. */
static void line_clear(struct line *line, const struct params *p)
{
    for (uint64_t i = 0; p->batch > 0 && i < p->slots; i += p->batch) {
        block_drop(line->slot[i], p, p->check);
        line->slot[i] = NULL;
    }
}

static void *life_main(void *argument)
{
    struct line *line = argument;
    const struct params *p = line->owner->params;
    line_clear(line, p);
    line->sum += slots_fill(line->slot, p, &line->rng);
    for (uint64_t i = 0; i < p->slots; i++) {
        const uint64_t place = line->turn[i];
        if (!stays(p, place))
            block_drop(line->slot[place], p, p->check);
    }
    return NULL;
}

static void churn_body(struct worker *w)
{
    const struct params *p = w->params;
    struct line line = {.owner = w,
                        .turn = w->shared,
                        .slot = own_memory(p->slots * sizeof(void *)),
                        .rng = random_start(p->seed, w->index)};
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    worker_pin(p, w->index, &attributes);
    for (uint64_t i = 0; i < p->iterations; i++) {
        pthread_t life;
        if (pthread_create(&life, &attributes, life_main, &line) != 0)
            give_up(EXIT_SYSTEM, "thread %ju of line %u could not be made", (uintmax_t)i + 1,
                    w->index);
        pthread_join(life, NULL);
    }
    pthread_attr_destroy(&attributes);
    line_clear(&line, p);
    w->operations = 2 * p->iterations * p->slots;
    w->checksum = line.sum;
    own_release(line.slot, p->slots * sizeof(void *));
}

void work_churn(const struct params *p, struct outcome *out)
{
    uint32_t *turn = own_permutation(p->slots, p->seed);
    const struct worker_calls calls = {.body = churn_body};
    workers_run(p, &calls, turn, out);
    own_release(turn, p->slots * sizeof *turn);
    resident_add(out);
}

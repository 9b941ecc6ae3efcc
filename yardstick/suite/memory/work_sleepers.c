/*
 * Sleepers: hundreds of threads use the heap for a moment, free all and sleep, as the workers of a
 * pool do when a burst is over. What each of them then holds, in KiB, above the same threads before
 * they had used the heap.
 */
#include "loops.h"
#include "memory.h"

struct sleepers {
    const struct params *p;
    void **slots;  /* of all threads, a share each; owner: its thread */
    uint64_t *sum; /* owner: its thread */
};

static void use_step(unsigned thread, void *shared)
{
    struct sleepers *s = shared;
    void **slot = s->slots + thread * s->p->slots;
    struct random rng = random_start(s->p->seed, thread);
    s->sum[thread] = mixed_turns(slot, s->p, s->p->iterations, &rng);
    slots_empty(slot, s->p);
}

/* Less than one KiB counts as one: beside none at all, every ratio would be without bounds. */
static double kib_each(const struct usage *u, const struct params *p)
{
    double kib = (double)usage_rest(u) / 1024 / p->threads;
    return kib > 1 ? kib : 1;
}

void work_sleepers(const struct params *p, struct outcome *out)
{
    const size_t slots_bytes = p->threads * p->slots * sizeof(void *);
    struct sleepers s = {.p = p,
                         .slots = own_touched(slots_bytes),
                         .sum = own_touched(p->threads * sizeof(uint64_t))};
    struct crew *crew = crew_start(p, &s);
    struct usage usage;
    usage_start(&usage);

    clock_start();
    crew_do(crew, use_step);
    clock_stop(out);
    outcome_add(out, "thread-0s", "KiB", kib_each(&usage, p));
    sleep_ms(p->wait);
    outcome_add(out, "thread-2s", "KiB", kib_each(&usage, p));

    out->operations = p->iterations * p->threads;
    for (unsigned t = 0; t < p->threads; t++)
        out->checksum = out->checksum * 31 + s.sum[t];
    crew_end(crew);
    own_release(s.slots, slots_bytes);
    own_release(s.sum, p->threads * sizeof *s.sum);
}

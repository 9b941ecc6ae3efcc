/*
 * Survivors: a heap is filled, then nine blocks of ten are freed at random, by any thread. What is
 * resident over what is still live tells how much came back: as the last free returns, and after
 * idle waits. The clock runs while the blocks are freed, so that giving memory back is in the time.
 */
#include "memory.h"

enum { KEPT_ONE_OF = 10 };

struct survivors {
    const struct params *p;
    void **block;    /* of all threads, a share each; owner: its thread while blocks are made */
    uint32_t *order; /* the last ones of it stay */
    uint64_t count, freed;
    uint64_t *from; /* of each thread's share, and the end */
    uint64_t *sum;  /* owner: its thread */
};

/* To reach a thread's share of bytes: two at least, one of which stays. */
static uint64_t blocks_of(const struct params *p, unsigned thread)
{
    const uint64_t bytes = p->iterations * 1024 / p->threads;
    const uint64_t needed = blocks_needed(p, random_start(p->seed, thread), bytes);
    return needed > 2 ? needed : 2;
}

static void make_step(unsigned thread, void *shared)
{
    struct survivors *s = shared;
    struct random rng = random_start(s->p->seed, thread);
    for (uint64_t i = s->from[thread]; i < s->from[thread + 1]; i++) {
        size_t size = size_next(s->p, &rng);
        s->sum[thread] = s->sum[thread] * 31 + size;
        s->block[i] = filled_make(size);
    }
}

static void free_step(unsigned thread, void *shared)
{
    struct survivors *s = shared;
    const struct params *p = s->p;
    const uint64_t from = s->freed * thread / p->threads;
    const uint64_t to = s->freed * (thread + 1) / p->threads;
    for (uint64_t i = from; i < to; i++)
        block_drop(s->block[s->order[i]], p, p->check);
}

/* Idle, or with `batch` blocks taken and given back every ten milliseconds: some allocators give
 * memory back only when they are called. */
static void idle(const struct params *p, uint64_t ms, struct random *rng)
{
    if (p->batch == 0) {
        sleep_ms(ms);
        return;
    }
    for (const uint64_t end = clock_now() + ms * 1000000; clock_now() < end;) {
        sleep_ms(10);
        for (uint64_t i = 0; i < p->batch; i++)
            free(block_make(size_next(p, rng), TOUCH_FIRST, false));
    }
}

static struct survivors survivors_plan(const struct params *p)
{
    struct survivors s = {.p = p,
                          .from = own_touched((p->threads + 1) * sizeof(uint64_t)),
                          .sum = own_touched(p->threads * sizeof(uint64_t))};
    for (unsigned t = 0; t < p->threads; t++)
        s.from[t + 1] = s.from[t] + blocks_of(p, t);
    s.count = s.from[p->threads];
    const uint64_t kept = s.count / KEPT_ONE_OF;
    s.freed = s.count - (kept > 0 ? kept : 1);
    s.block = own_touched(s.count * sizeof *s.block);
    s.order = own_permutation(s.count, p->seed);
    return s;
}

static void survivors_release(struct survivors *s)
{
    own_release(s->block, s->count * sizeof *s->block);
    own_release(s->order, s->count * sizeof *s->order);
    own_release(s->from, (s->p->threads + 1) * sizeof *s->from);
    own_release(s->sum, s->p->threads * sizeof *s->sum);
}

/* When to look, in seconds of idleness, and the figure's name. */
struct mark {
    unsigned second;
    const char *name;
};

/* Looks at each mark; the row's wait is that of the last one. */
static void watch(const struct params *p, const struct usage *usage, uint64_t live,
                  const struct mark *mark, size_t marks, struct outcome *out)
{
    struct random rng = random_start(p->seed, p->threads);
    const unsigned last = mark[marks - 1].second;
    for (size_t m = 0, waited = 0; m < marks; m++) {
        const uint64_t until = p->wait * mark[m].second / last;
        idle(p, until - waited, &rng);
        waited = until;
        outcome_add(out, mark[m].name, "ratio", (double)usage_rest(usage) / (double)live);
    }
}

static void survivors_run(const struct params *p, struct outcome *out, const struct mark *mark,
                          size_t marks)
{
    struct survivors s = survivors_plan(p);
    struct crew *crew = crew_start(p, &s);
    struct usage usage;
    usage_start(&usage);
    crew_do(crew, make_step);

    uint64_t live = 0;
    for (uint64_t i = s.freed; i < s.count; i++)
        live += filled_size(s.block[s.order[i]]);

    clock_start();
    crew_do(crew, free_step);
    clock_stop(out);
    outcome_add(out, "free", "ns", 1e9 * out->cpu_seconds / (double)s.freed);
    watch(p, &usage, live, mark, marks, out);

    out->operations = s.freed;
    for (unsigned t = 0; t < p->threads; t++)
        out->checksum = out->checksum * 31 + s.sum[t];
    for (uint64_t i = s.freed; i < s.count; i++)
        filled_drop(s.block[s.order[i]], p);
    crew_end(crew);
    survivors_release(&s);
}

void work_survivors(const struct params *p, struct outcome *out)
{
    static const struct mark marks[] = {{0, "left-0s"}, {1, "left-1s"}};
    survivors_run(p, out, marks, 2);
}

void work_survivors_2s(const struct params *p, struct outcome *out)
{
    static const struct mark marks[] = {{0, "left-0s"}, {1, "left-1s"}, {2, "left-2s"}};
    survivors_run(p, out, marks, 3);
}

void work_survivors_10s(const struct params *p, struct outcome *out)
{
    static const struct mark marks[] = {{0, "left-0s"}, {1, "left-1s"}, {10, "left-10s"}};
    survivors_run(p, out, marks, 3);
}

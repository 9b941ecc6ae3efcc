/*
 * False sharing: threads that each write to small blocks of their own, as hard
 * as they can. If the allocator gave blocks of one cache line to different
 * threads, every write takes the line away from the other core.
 *
 *   active     the threads allocate at the same time: are they given neighbours?
 *   passive    the main thread deals neighbours out to them, and they free them
 *              and allocate anew: does the sharing go on?
 *
 * In a turn a thread replaces the oldest of its `slots` blocks and counts up in
 * each of them, `batch` times. "threads-a-line" is how many threads' blocks
 * begin on the cache line of a block, on average over all blocks held at the
 * end: 1 without sharing. It tells of sharing where time can't, since two
 * hardware threads of one core share their cache.
 */
#include "block.h"

enum { LINE = 64 };

typedef volatile uint64_t counter; /* a block's first bytes */

struct sharing {
    counter **held; /* [index * stride], each thread's blocks of the moment */
    uint64_t stride;
};

static counter *counter_make(const struct params *p)
{
    counter *c = block_get(p->min);
    *c = 0;
    return c;
}

static counter **held_of(const struct worker *w)
{
    const struct sharing *s = w->shared;
    return &s->held[w->index * s->stride];
}

static void active_prepare(struct worker *w)
{
    for (uint64_t i = 0; i < w->params->slots; i++)
        held_of(w)[i] = counter_make(w->params);
}

static void sharing_body(struct worker *w)
{
    const struct params *p = w->params;
    counter **held = held_of(w);
    const uint64_t slots = p->slots, batch = p->batch;

    uint64_t oldest = 0;
    for (uint64_t turn = 0; turn < p->iterations; turn++) {
        /* One that lived through all `slots` turns was counted up in each. */
        if (p->check && turn >= slots && *held[oldest] != slots * batch)
            give_up(EXIT_CONTENT, "block %p counted to %ju instead of %ju", (void *)held[oldest],
                    (uintmax_t)*held[oldest], (uintmax_t)(slots * batch));
        free((void *)held[oldest]);
        held[oldest] = counter_make(p);
        oldest = oldest + 1 < slots ? oldest + 1 : 0;
        for (uint64_t k = 0; k < batch; k++)
            for (uint64_t i = 0; i < slots; i++)
                ++*held[i];
    }
    w->operations = 2 * p->iterations;
    w->checksum = p->iterations * p->min;
}

static bool begins_on(const struct params *p, counter *const *held, uintptr_t line)
{
    for (uint64_t i = 0; i < p->slots; i++)
        if ((uintptr_t)held[i] / LINE == line)
            return true;
    return false;
}

static double threads_a_line(const struct params *p, const struct sharing *s)
{
    uint64_t threads = 0;
    for (unsigned owner = 0; owner < p->threads; owner++)
        for (uint64_t i = 0; i < p->slots; i++) {
            const uintptr_t line = (uintptr_t)s->held[owner * s->stride + i] / LINE;
            for (unsigned t = 0; t < p->threads; t++)
                threads += begins_on(p, &s->held[t * s->stride], line);
        }
    return (double)threads / (double)(p->threads * p->slots);
}

static void sharing_run(const struct params *p, bool dealt, struct outcome *out)
{
    if (p->batch == 0)
        give_up(EXIT_USAGE, "a block must be written at least once");
    /* Two lines apart, so that the tables themselves share nothing. */
    struct sharing s = {.stride = (p->slots + 15) / 16 * 16 + 16};
    const size_t bytes = p->threads * s.stride * sizeof *s.held;
    s.held = own_memory(bytes);
    for (uint64_t i = 0; dealt && i < p->slots; i++)
        for (unsigned t = 0; t < p->threads; t++)
            s.held[t * s.stride + i] = counter_make(p);

    const struct worker_calls calls = {.prepare = dealt ? NULL : active_prepare,
                                       .body = sharing_body};
    workers_run(p, &calls, &s, out);
    outcome_add(out, "threads-a-line", "threads", threads_a_line(p, &s));

    for (unsigned t = 0; t < p->threads; t++)
        for (uint64_t i = 0; i < p->slots; i++)
            free((void *)s.held[t * s.stride + i]);
    own_release(s.held, bytes);
}

void work_sharing_active(const struct params *p, struct outcome *out)
{
    sharing_run(p, false, out);
}

void work_sharing_passive(const struct params *p, struct outcome *out)
{
    sharing_run(p, true, out);
}

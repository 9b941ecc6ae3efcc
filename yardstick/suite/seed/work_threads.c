/*
 * Rows of several threads: each with blocks of its own; blocks exchanged; and
 * blocks handed on from one generation of threads to the next.
 */
#include "exchange.h"

#include <pthread.h>
#include <semaphore.h>

/* ---- own: random mixed, nothing shared but the allocator */

static void own_body(struct worker *w)
{
    const struct params *p = w->params;
    void **slot = own_memory(p->slots * sizeof *slot);
    struct random rng = random_start(p->seed, w->index);
    w->checksum = mixed_turns(slot, p, p->iterations, &rng);
    w->operations = p->iterations;
    slots_empty(slot, p); /* in the time: the thread that made them frees them */
    own_release(slot, p->slots * sizeof *slot);
}

void work_own(const struct params *p, struct outcome *out)
{
    const struct worker_calls calls = {.body = own_body};
    workers_run(p, &calls, NULL, out);
}

/* ---- exchange */

static ALWAYS_INLINE uint64_t exchange_turn(void **tray, struct worker *w, uint64_t turns,
                                            struct random *rng)
{
    return replace_turns(tray, w->params, turns, rng);
}

static void exchange_body(struct worker *w) { exchange_work(w, w->shared, exchange_turn); }

void work_exchange(const struct params *p, struct outcome *out)
{
    uint64_t filled = 0;
    struct mailbox *mailbox = mailboxes_make(p, &filled);
    const struct worker_calls calls = {.body = exchange_body};
    workers_run(p, &calls, mailbox, out);
    out->checksum += filled;
    mailboxes_release(mailbox, p);
}

/* ---- larson: a server whose requests outlive the thread that took them
 *
 * A line of threads shares one array of slots, one thread at a time: each
 * replaces random blocks for a while, starts its successor and ends. `batch`
 * says how many times its slots a thread replaces before it ends.
 */

struct line {
    _Alignas(128) const struct params *params;
    void **slot;
    struct random rng;
    uint64_t left; /* owner: the line's thread of the moment */
    uint64_t checksum;
    unsigned index;
    sem_t *finished;
};

static void line_start(struct line *line);

static void *line_main(void *argument)
{
    struct line *line = argument;
    const struct params *p = line->params;
    uint64_t turns = p->batch * p->slots;
    if (turns > line->left)
        turns = line->left;
    line->checksum += replace_turns(line->slot, p, turns, &line->rng);
    line->left -= turns;
    if (line->left > 0)
        line_start(line);
    else
        sem_post(line->finished);
    return NULL;
}

static void line_start(struct line *line)
{
    pthread_detach(worker_start(line->params, line->index, 0, line_main, line));
}

void work_larson(const struct params *p, struct outcome *out)
{
    struct line *line = own_memory(p->threads * sizeof *line);
    sem_t finished;
    sem_init(&finished, 0, 0);
    for (unsigned i = 0; i < p->threads; i++) {
        line[i] = (struct line){.params = p,
                                .slot = own_memory(p->slots * sizeof(void *)),
                                .rng = random_start(p->seed, i),
                                .left = p->iterations,
                                .index = i,
                                .finished = &finished};
        line[i].checksum = slots_fill(line[i].slot, p, &line[i].rng);
    }

    clock_start();
    for (unsigned i = 0; i < p->threads; i++)
        line_start(&line[i]);
    for (unsigned i = 0; i < p->threads; i++)
        while (sem_wait(&finished) != 0)
            continue;
    clock_stop(out);

    for (unsigned i = 0; i < p->threads; i++) {
        out->operations += 2 * p->iterations;
        out->checksum = out->checksum * 31 + line[i].checksum;
        slots_empty(line[i].slot, p);
        own_release(line[i].slot, p->slots * sizeof(void *));
    }
    /* `line` and `finished` stay: a thread may still be on its way out. */
}

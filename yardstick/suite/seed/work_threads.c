/*
 * Rows of several threads: each with blocks of its own; blocks exchanged; and
 * blocks handed on from one generation of threads to the next.
 */
#include "loops.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>

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

/* ---- exchange: trays of blocks go round through mailboxes
 *
 * A thread replaces random blocks of the tray it holds, a quarter of a tray's
 * worth of them, then lays the tray into a mailbox and takes out the one that
 * lies there. Most of what it frees was therefore made by somebody else, while
 * the exchange itself costs next to nothing: what is measured is the free of a
 * foreign block, not the traffic of the slots.
 */

struct mailbox {
    _Alignas(128) _Atomic(void **) tray; /* atomic; never null */
};

static void exchange_body(struct worker *w)
{
    const struct params *p = w->params;
    struct mailbox *mailbox = w->shared;
    struct random rng = random_start(p->seed, w->index);
    void **tray = own_memory(p->slots * sizeof *tray);
    uint64_t sum = slots_fill(tray, p, &rng);
    const uint64_t hold = p->slots / 4 > 0 ? p->slots / 4 : 1;

    uint64_t round = 0;
    for (uint64_t done = 0; done < p->iterations; round++) {
        uint64_t turns = p->iterations - done < hold ? p->iterations - done : hold;
        sum += replace_turns(tray, p, turns, &rng);
        done += turns;
        /* Each round another box: threads in step never get their own back. */
        struct mailbox *box = &mailbox[(w->index + round) % p->threads];
        tray = atomic_exchange_explicit(&box->tray, tray, memory_order_acq_rel);
    }
    w->checksum = sum;
    w->operations = p->slots + 2 * p->iterations;
    slots_empty(tray, p);
    w->operations += p->slots;
    own_release(tray, p->slots * sizeof *tray);
}

void work_exchange(const struct params *p, struct outcome *out)
{
    struct mailbox *mailbox = own_memory(p->threads * sizeof *mailbox);
    struct random rng = random_start(p->seed, p->threads);
    uint64_t filled = 0;
    for (unsigned i = 0; i < p->threads; i++) {
        void **tray = own_memory(p->slots * sizeof *tray);
        filled += slots_fill(tray, p, &rng);
        atomic_init(&mailbox[i].tray, tray);
    }

    const struct worker_calls calls = {.body = exchange_body};
    workers_run(p, &calls, mailbox, out);
    out->checksum += filled;

    for (unsigned i = 0; i < p->threads; i++) {
        void **tray = atomic_load(&mailbox[i].tray);
        slots_empty(tray, p);
        own_release(tray, p->slots * sizeof *tray);
    }
    own_release(mailbox, p->threads * sizeof *mailbox);
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
    pthread_t thread;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    worker_pin(line->params, line->index, &attributes);
    if (pthread_create(&thread, &attributes, line_main, line) != 0)
        give_up(EXIT_SYSTEM, "a thread could not start its successor");
    pthread_attr_destroy(&attributes);
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

    clock_start(p);
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

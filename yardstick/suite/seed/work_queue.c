/*
 * Producer and consumer: one thread only allocates, the other only frees, and
 * the blocks travel through a bounded queue, a batch at a time. The queue is
 * two counters and an array, each side writing one counter; with batches its
 * own cost is a small part of a block's.
 */
#include "handover.h"

struct queue {
    _Alignas(128) _Atomic uint64_t put;   /* batches laid in; written by the producer */
    _Alignas(128) _Atomic uint64_t taken; /* batches freed; written by the consumer */
    _Alignas(128) void *block[];          /* of the producer until put, then of the consumer */
};

struct queues {
    size_t bytes; /* of one queue */
    uint64_t cells;
    const uint32_t *turn; /* order within a batch, or null for the order it came in */
    char *memory;
};

/* A queue of every pair of threads: even index produces, odd consumes. */
static struct queue *queue_of(const struct worker *w)
{
    const struct queues *all = w->shared;
    return (struct queue *)(all->memory + w->index / 2 * all->bytes);
}

/* Spins for a moment, then lets others run: the far side may have no core. */
static void wait_for(_Atomic uint64_t *counter, uint64_t at_least)
{
    for (unsigned spins = 0; atomic_load_explicit(counter, memory_order_acquire) < at_least;) {
        if (++spins < 256)
            spin_hint();
        else
            sched_yield();
    }
}

static ALWAYS_INLINE void produce(struct worker *w, enum touch touch, bool check)
{
    const struct params *p = w->params;
    const struct queues *all = w->shared;
    struct queue *q = queue_of(w);
    struct random rng = random_start(p->seed, w->index);
    const uint64_t batches = p->iterations / p->batch, min = p->min, span = params_span(p);
    uint64_t sum = 0;

    for (uint64_t b = 0; b < batches; b++) {
        if (b >= all->cells)
            wait_for(&q->taken, b - all->cells + 1);
        void **cell = &q->block[b % all->cells * p->batch];
        for (uint64_t k = 0; k < p->batch; k++) {
            size_t size = size_draw(random_next(&rng), min, span);
            sum += size;
            cell[k] = block_make(size, touch, check);
        }
        atomic_store_explicit(&q->put, b + 1, memory_order_release);
    }
    w->checksum = sum;
    w->operations = batches * p->batch;
}

static ALWAYS_INLINE void consume(struct worker *w, bool check)
{
    const struct params *p = w->params;
    const struct queues *all = w->shared;
    struct queue *q = queue_of(w);
    const uint64_t batches = p->iterations / p->batch;

    for (uint64_t b = 0; b < batches; b++) {
        wait_for(&q->put, b + 1);
        void **cell = &q->block[b % all->cells * p->batch];
        if (all->turn != NULL)
            for (uint64_t k = 0; k < p->batch; k++)
                block_drop(cell[all->turn[k]], p, check);
        else
            for (uint64_t k = 0; k < p->batch; k++)
                block_drop(cell[k], p, check);
        atomic_store_explicit(&q->taken, b + 1, memory_order_release);
    }
    w->operations = batches * p->batch;
}

static void queue_body(struct worker *w)
{
    const struct params *p = w->params;
    if (w->index % 2 == 1) {
        if (p->check)
            consume(w, true);
        else
            consume(w, false);
    } else if (p->check) {
        produce(w, p->touch, true);
    } else if (p->touch == TOUCH_NONE) {
        produce(w, TOUCH_NONE, false);
    } else if (p->touch == TOUCH_FIRST) {
        produce(w, TOUCH_FIRST, false);
    } else if (p->touch == TOUCH_BOTH) {
        produce(w, TOUCH_BOTH, false);
    } else {
        produce(w, TOUCH_PAGES, false);
    }
}

void work_queue(const struct params *p, struct outcome *out)
{
    if (p->threads % 2 != 0)
        give_up(EXIT_USAGE, "a queue takes pairs of threads, not %u threads", p->threads);
    if (p->slots < p->batch)
        give_up(EXIT_USAGE, "the queue's %ju slots don't hold a batch of %ju", (uintmax_t)p->slots,
                (uintmax_t)p->batch);

    struct queues all = {.cells = p->slots / p->batch};
    all.bytes = sizeof(struct queue) + all.cells * p->batch * sizeof(void *);
    all.bytes = (all.bytes + 127) / 128 * 128;
    all.memory = own_memory(p->threads / 2 * all.bytes);
    all.turn = p->order == ORDER_SHUFFLED ? own_permutation(p->batch, p->seed) : NULL;

    const struct worker_calls calls = {.body = queue_body};
    workers_run(p, &calls, &all, out);
    own_release(all.memory, p->threads / 2 * all.bytes);
}

/*
 * A server of three stages, each with threads of its own: requests go from
 * stage to stage through a bounded lane, some on a tray, and their blocks with
 * them. No stage frees all that it made:
 *
 *   read      makes the request, its name and its body
 *   handle    makes three nodes and the reply, frees the name
 *   write     frees all the rest
 *
 * A request's blocks are reached through the request itself, which is one of
 * the allocator's blocks too, as in a program: whoever takes over a request
 * first brings its lines to its own core. Sizes follow from the request's
 * number, so the work is the same whichever thread does it.
 */
#include "handover.h"

enum { STAGES = 3, NODES = 3, SMALL_SPAN = 112, NODE_SPAN = 48 };

enum part { NAME, BODY, NODE, REPLY = NODE + NODES, PARTS };

struct request {
    uint64_t number;
    unsigned char *part[PARTS];
};

struct pool {
    struct lane lane[STAGES - 1];       /* from each stage to the next */
    uint64_t trays;                     /* of all requests */
    _Alignas(128) _Atomic uint64_t sum; /* atomic; of sizes asked for, by all threads */
};

/* A thread's own view, whose address stays with it. */
struct hand {
    const struct params *params;
    uint64_t sum;
    uint64_t calls;
};

static void part_make(struct hand *h, struct request *r, enum part part, uint64_t span)
{
    const struct params *p = h->params;
    struct random rng = random_start(p->seed, r->number * PARTS + (uint64_t)part);
    size_t size = p->min + random_high(rng.state, span);
    h->sum += size;
    h->calls++;
    r->part[part] =
        p->check ? block_make(size, TOUCH_BOTH, true) : block_make(size, TOUCH_BOTH, false);
}

static void part_drop(struct hand *h, struct request *r, enum part part)
{
    h->calls++;
    block_drop(r->part[part], h->params, h->params->check);
}

static struct request *request_read(struct hand *h, uint64_t number)
{
    struct request *r = block_get(sizeof *r);
    h->sum += sizeof *r;
    h->calls++;
    r->number = number;
    part_make(h, r, NAME, SMALL_SPAN);
    part_make(h, r, BODY, params_span(h->params));
    return r;
}

static void request_handle(struct hand *h, struct request *r)
{
    for (int i = 0; i < NODES; i++)
        part_make(h, r, (enum part)(NODE + i), NODE_SPAN);
    part_make(h, r, REPLY, params_span(h->params));
    part_drop(h, r, NAME);
}

static void request_write(struct hand *h, struct request *r, uint64_t requests)
{
    if (r->number >= requests)
        give_up(EXIT_CONTENT, "request %p lost its number: %ju of %ju", (void *)r,
                (uintmax_t)r->number, (uintmax_t)requests);
    for (int part = BODY; part < PARTS; part++)
        part_drop(h, r, (enum part)part);
    free(r);
    h->calls++;
}

static void stage_read(struct worker *w, struct hand *h, void **tray)
{
    const struct params *p = w->params;
    struct pool *pool = w->shared;
    const uint64_t trays = trays_of(p), first = w->index / STAGES * trays;
    for (uint64_t t = first; t < first + trays; t++) {
        for (uint64_t i = 0; i < p->batch; i++)
            tray[i] = request_read(h, t * p->batch + i);
        tray = lane_put(&pool->lane[0], atomic_fetch_add(&pool->lane[0].put_tickets, 1), tray);
    }
}

static void stage_handle(struct worker *w, struct hand *h, void **tray)
{
    const struct params *p = w->params;
    struct pool *pool = w->shared;
    struct lane *in = &pool->lane[0], *next = &pool->lane[1];
    for (uint64_t t; (t = atomic_fetch_add(&in->take_tickets, 1)) < pool->trays;) {
        tray = lane_take(in, t, tray);
        for (uint64_t i = 0; i < p->batch; i++)
            request_handle(h, tray[i]);
        tray = lane_put(next, atomic_fetch_add(&next->put_tickets, 1), tray);
    }
}

static void stage_write(struct worker *w, struct hand *h, void **tray)
{
    const struct params *p = w->params;
    struct pool *pool = w->shared;
    struct lane *in = &pool->lane[1];
    for (uint64_t t; (t = atomic_fetch_add(&in->take_tickets, 1)) < pool->trays;) {
        tray = lane_take(in, t, tray);
        for (uint64_t i = 0; i < p->batch; i++)
            request_write(h, tray[i], pool->trays * p->batch);
    }
}

static void pool_body(struct worker *w)
{
    static void (*const stage[STAGES])(struct worker *, struct hand *,
                                       void **) = {stage_read, stage_handle, stage_write};
    struct pool *pool = w->shared;
    struct hand hand = {.params = w->params};
    /* Never released: it is in a lane when its thread ends. */
    stage[w->index % STAGES](w, &hand, own_memory(w->params->batch * sizeof(void *)));
    w->operations = hand.calls;
    atomic_fetch_add(&pool->sum, hand.sum);
}

void work_pool(const struct params *p, struct outcome *out)
{
    if (p->threads % STAGES != 0)
        give_up(EXIT_USAGE, "a pool takes threads by threes, not %u", p->threads);
    if (p->batch == 0 || p->slots < p->batch || params_span(p) < SMALL_SPAN)
        give_up(EXIT_USAGE, "a pool needs room for a tray, and sizes %d apart", SMALL_SPAN);

    struct pool pool = {.trays = p->threads / STAGES * trays_of(p)};
    for (int i = 0; i < STAGES - 1; i++)
        lane_open(&pool.lane[i], p->slots / p->batch, p);
    const struct worker_calls calls = {.body = pool_body};
    workers_run(p, &calls, &pool, out);
    /* Who handled which request differs from run to run; the sum over all doesn't. */
    out->checksum = atomic_load(&pool.sum);
    for (int i = 0; i < STAGES - 1; i++)
        lane_close(&pool.lane[i]);
    resident_add(out);
}

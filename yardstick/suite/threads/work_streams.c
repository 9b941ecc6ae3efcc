/*
 * Producers and consumers: `makers` threads only allocate, the others only
 * free, and full trays go through one bounded lane that all of them share. A
 * consumer takes whichever tray comes next, so each frees blocks of every
 * producer. `slots` bounds the blocks on their way, of all threads together.
 */
#include "handover.h"

struct stream {
    struct lane lane;
    uint64_t trays;       /* of all producers together */
    const uint32_t *turn; /* order within a tray, or null */
};

static void produce(struct worker *w, struct stream *s, void **tray)
{
    const struct params *p = w->params;
    struct random rng = random_start(p->seed, w->index);
    const uint64_t trays = trays_of(p);
    for (uint64_t i = 0; i < trays; i++) {
        w->checksum += tray_fill(tray, p, &rng);
        tray = lane_put(&s->lane, atomic_fetch_add(&s->lane.put_tickets, 1), tray);
    }
    w->operations = trays * p->batch;
}

static void consume(struct worker *w, struct stream *s, void **tray)
{
    const struct params *p = w->params;
    for (;;) {
        uint64_t ticket = atomic_fetch_add(&s->lane.take_tickets, 1);
        if (ticket >= s->trays)
            return;
        tray = lane_take(&s->lane, ticket, tray);
        tray_empty(tray, p, s->turn);
        w->operations += p->batch;
    }
}

static void stream_body(struct worker *w)
{
    struct stream *s = w->shared;
    /* Never released: it is in the lane when its thread ends. */
    void **tray = own_memory(w->params->batch * sizeof *tray);
    if (w->index < w->params->makers)
        produce(w, s, tray);
    else
        consume(w, s, tray);
}

void work_stream(const struct params *p, struct outcome *out)
{
    if (p->makers == 0 || p->makers >= p->threads)
        give_up(EXIT_USAGE, "of %u threads some must make and some must free, not %u", p->threads,
                p->makers);
    if (p->batch == 0 || p->slots < p->batch)
        give_up(EXIT_USAGE, "the stream's %ju slots don't hold a tray of %ju", (uintmax_t)p->slots,
                (uintmax_t)p->batch);

    struct stream s = {.trays = p->makers * trays_of(p)};
    lane_open(&s.lane, p->slots / p->batch, p);
    uint32_t *turn = p->order == ORDER_SHUFFLED ? own_permutation(p->batch, p->seed) : NULL;
    s.turn = turn;

    const struct worker_calls calls = {.body = stream_body};
    workers_run(p, &calls, &s, out);

    lane_close(&s.lane);
    if (turn != NULL)
        own_release(turn, p->batch * sizeof *turn);
    resident_add(out);
}

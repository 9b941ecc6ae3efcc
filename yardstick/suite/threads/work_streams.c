/*
 * Producers and consumers: some threads only allocate, the others only free, and
 * full trays go from the ones to the others through bounded lanes.
 *
 *   queue     by pairs, each with a lane of its own
 *   stream    `makers` threads allocate, all others free, and all share one lane:
 *             each consumer takes whichever tray comes next, and so frees blocks
 *             of every producer
 *
 * `slots` bounds the blocks on their way in a lane.
 */
#include "handover.h"

struct streams {
    struct lane *lane;
    bool pairs;           /* a lane for each two threads, of which the first produces */
    uint64_t trays;       /* of each producer */
    uint64_t all;         /* of a lane */
    const uint32_t *turn; /* order within a tray, or null */
};

static void produce(struct worker *w, struct lane *lane, void **tray)
{
    const struct params *p = w->params;
    const struct streams *s = w->shared;
    struct random rng = random_start(p->seed, w->index);
    for (uint64_t i = 0; i < s->trays; i++) {
        w->checksum += tray_fill(tray, p, &rng);
        tray = lane_put(lane, atomic_fetch_add(&lane->put_tickets, 1), tray);
    }
    w->operations = s->trays * p->batch;
}

static void consume(struct worker *w, struct lane *lane, void **tray)
{
    const struct params *p = w->params;
    const struct streams *s = w->shared;
    for (;;) {
        uint64_t ticket = atomic_fetch_add(&lane->take_tickets, 1);
        if (ticket >= s->all)
            return;
        tray = lane_take(lane, ticket, tray);
        tray_empty(tray, p, s->turn);
        w->operations += p->batch;
    }
}

static void stream_body(struct worker *w)
{
    const struct streams *s = w->shared;
    struct lane *lane = &s->lane[s->pairs ? w->index / 2 : 0];
    /* Never released: it is in the lane when its thread ends. */
    void **tray = own_memory(w->params->batch * sizeof *tray);
    if (s->pairs ? w->index % 2 == 0 : w->index < w->params->makers)
        produce(w, lane, tray);
    else
        consume(w, lane, tray);
}

static void streams_run(const struct params *p, struct streams *s, unsigned lanes, uint64_t cells,
                        struct outcome *out)
{
    s->lane = own_memory(lanes * sizeof *s->lane);
    for (unsigned i = 0; i < lanes; i++)
        lane_open(&s->lane[i], cells, p);
    uint32_t *turn = p->order == ORDER_SHUFFLED ? own_permutation(p->batch, p->seed) : NULL;
    s->turn = turn;

    const struct worker_calls calls = {.body = stream_body};
    workers_run(p, &calls, s, out);

    for (unsigned i = 0; i < lanes; i++)
        lane_close(&s->lane[i]);
    own_release(s->lane, lanes * sizeof *s->lane);
    if (turn != NULL)
        own_release(turn, p->batch * sizeof *turn);
}

static void room_validate(const struct params *p)
{
    if (p->batch == 0 || p->slots < p->batch)
        give_up(EXIT_USAGE, "%ju slots don't hold a tray of %ju", (uintmax_t)p->slots,
                (uintmax_t)p->batch);
}

void work_queue(const struct params *p, struct outcome *out)
{
    if (p->threads % 2 != 0)
        give_up(EXIT_USAGE, "a queue takes pairs of threads, not %u threads", p->threads);
    room_validate(p);
    struct streams s = {.pairs = true, .trays = trays_of(p), .all = trays_of(p)};
    /* On their way are also the tray that is being filled and the one that is being emptied. */
    const uint64_t room = p->slots / p->batch;
    streams_run(p, &s, p->threads / 2, room > 2 ? room - 2 : 1, out);
}

void work_stream(const struct params *p, struct outcome *out)
{
    if (p->makers == 0 || p->makers >= p->threads)
        give_up(EXIT_USAGE, "of %u threads some must make and some must free, not %u", p->threads,
                p->makers);
    room_validate(p);
    struct streams s = {.trays = trays_of(p), .all = p->makers * trays_of(p)};
    streams_run(p, &s, 1, p->slots / p->batch, out);
    resident_add(out);
}

/*
 * Rounds: in each, every thread fills a tray for another thread, and frees one
 * that came from another. In a ring the other is always the next thread; in
 * an exchange of all with all it is each of the others in turn. Every pair that
 * meets has a lane of its own, so who frees which block is settled in advance.
 *
 * A thread takes what was sent LAG rounds ago. It can so run ahead of the one
 * it depends on, and with more threads than cores does some work between two
 * changes of thread. A lane has room for LAG + 1 rounds' trays: whichever
 * thread is furthest behind can then always go on.
 */
#include "handover.h"

enum { LAG = 16 };

struct rounds {
    uint64_t reach;    /* how many others a thread sends to: the next, the one after, ... */
    struct lane *lane; /* [from * reach + distance - 1] */
};

static void rounds_body(struct worker *w)
{
    const struct params *p = w->params;
    const struct rounds *all = w->shared;
    const uint64_t reach = all->reach, rounds = trays_of(p);
    struct random rng = random_start(p->seed, w->index);
    /* Never released: it is in a lane when its thread ends. */
    void **tray = own_memory(p->batch * sizeof *tray);

    for (uint64_t round = 0; round < rounds + LAG; round++) {
        if (round < rounds) {
            struct lane *out = &all->lane[w->index * reach + round % reach];
            w->checksum += tray_fill(tray, p, &rng);
            tray = lane_put(out, round / reach, tray);
        }
        if (round >= LAG) {
            const uint64_t sent = round - LAG;
            uint64_t from = (w->index + p->threads - (sent % reach + 1) % p->threads) % p->threads;
            tray = lane_take(&all->lane[from * reach + sent % reach], sent / reach, tray);
            tray_empty(tray, p, NULL);
        }
    }
    w->operations = 2 * rounds * p->batch;
}

static void rounds_run(const struct params *p, uint64_t reach, struct outcome *out)
{
    if (p->batch == 0)
        give_up(EXIT_USAGE, "a tray must hold at least one block");
    const uint64_t lanes = p->threads * reach;
    struct rounds all = {.reach = reach, .lane = own_memory(lanes * sizeof *all.lane)};
    for (uint64_t i = 0; i < lanes; i++)
        lane_open(&all.lane[i], LAG / reach + 1, p);

    const struct worker_calls calls = {.body = rounds_body};
    workers_run(p, &calls, &all, out);

    for (uint64_t i = 0; i < lanes; i++)
        lane_close(&all.lane[i]);
    own_release(all.lane, lanes * sizeof *all.lane);
    resident_add(out);
}

void work_ring(const struct params *p, struct outcome *out) { rounds_run(p, 1, out); }

void work_all_to_all(const struct params *p, struct outcome *out)
{
    if (p->threads < 2)
        give_up(EXIT_USAGE, "an exchange takes two threads or more");
    rounds_run(p, p->threads - 1, out);
}

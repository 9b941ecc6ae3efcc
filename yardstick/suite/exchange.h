/*
 * Trays of blocks that go round among threads through mailboxes.
 *
 * A thread replaces random blocks of the tray it holds, a quarter of a tray's worth of them, then
 * lays the tray into a mailbox and takes out the one that lies there. Most of what it frees was
 * therefore made by somebody else, while the exchange itself costs next to nothing: what is
 * measured is the free of a foreign block, not the traffic of the slots.
 */
#ifndef SUITE_EXCHANGE_H
#define SUITE_EXCHANGE_H

#include "loops.h"

#include <stdatomic.h>

struct mailbox {
    _Alignas(128) _Atomic(void **) tray; /* atomic; never null */
};

/* One for each thread, with a full tray. Adds the sizes of its blocks to `sum`. */
static inline struct mailbox *mailboxes_make(const struct params *p, uint64_t *sum)
{
    struct mailbox *mailbox = own_memory(p->threads * sizeof *mailbox);
    struct random rng = random_start(p->seed, p->threads);
    for (unsigned i = 0; i < p->threads; i++) {
        void **tray = own_memory(p->slots * sizeof *tray);
        *sum += slots_fill(tray, p, &rng);
        atomic_init(&mailbox[i].tray, tray);
    }
    return mailbox;
}

/* When the threads are gone. */
static inline void mailboxes_release(struct mailbox *mailbox, const struct params *p)
{
    for (unsigned i = 0; i < p->threads; i++) {
        void **tray = atomic_load(&mailbox[i].tray);
        slots_empty(tray, p);
        own_release(tray, p->slots * sizeof *tray);
    }
    own_release(mailbox, p->threads * sizeof *mailbox);
}

/* Replaces `turns` blocks of a tray, and gives the sum of the new ones' sizes. */
typedef uint64_t exchange_turns(void **tray, struct worker *w, uint64_t turns, struct random *rng);

/* What a thread does: it fills a tray, then by turns replaces blocks and exchanges trays, and
 * empties the tray that it is left with. */
static ALWAYS_INLINE void exchange_work(struct worker *w, struct mailbox *mailbox,
                                        exchange_turns *replace)
{
    const struct params *p = w->params;
    struct random rng = random_start(p->seed, w->index);
    void **tray = own_memory(p->slots * sizeof *tray);
    uint64_t sum = slots_fill(tray, p, &rng);
    const uint64_t hold = p->slots / 4 > 0 ? p->slots / 4 : 1;

    uint64_t round = 0;
    for (uint64_t done = 0; done < p->iterations; round++) {
        uint64_t turns = p->iterations - done < hold ? p->iterations - done : hold;
        sum += replace(tray, w, turns, &rng);
        done += turns;
        /* Each round another box: threads in step never get their own back. */
        struct mailbox *box = &mailbox[(w->index + round) % p->threads];
        tray = atomic_exchange_explicit(&box->tray, tray, memory_order_acq_rel);
    }
    w->checksum = sum;
    w->operations = 2 * p->slots + 2 * p->iterations;
    slots_empty(tray, p);
    own_release(tray, p->slots * sizeof *tray);
}

#endif

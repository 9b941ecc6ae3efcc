/*
 * Trays of blocks handed from thread to thread.
 *
 *   lane_put      waits for an empty cell, lays a full tray in, gets an empty one
 *   lane_take     waits for a full cell, lays an empty tray in, gets the full one
 *   tray_fill     asks for a tray's worth of blocks
 *   tray_empty    gives them back
 *
 * A lane is a bounded queue: an array of cells, each of which holds one tray at
 * all times, full or empty by turns. Whoever puts or takes brings a ticket, the
 * running number of the tray in this lane, and waits for that ticket's cell: one
 * producer and one consumer count for themselves, many draw theirs from the
 * lane's counters. Nothing here allocates, and a tray costs a few hundred
 * cycles at most, whatever the number of blocks on it.
 *
 * A thread that waits spins for a moment, lets others run for a while, and then
 * sleeps. With a core for each thread it does so for long, since to be woken
 * takes more than a tray's blocks do; with more threads than cores it sleeps
 * soon, or dozens of threads that yield to one another would be what is measured.
 */
#ifndef SUITE_HANDOVER_H
#define SUITE_HANDOVER_H

#include "block.h"
#include "random.h"

#include <linux/futex.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

struct cell {
    /* atomic; how often the cell was filled and emptied: even means empty */
    _Alignas(128) _Atomic uint32_t turn;
    _Atomic uint32_t sleepers; /* atomic; threads that sleep until `turn` changes */
    void **tray;               /* of the side whose turn it is */
};

struct lane {
    _Alignas(128) _Atomic uint64_t put_tickets;  /* atomic; drawn by many producers */
    _Alignas(128) _Atomic uint64_t take_tickets; /* atomic; drawn by many consumers */
    _Alignas(128) uint64_t cells;                /* set before the threads start, as all below */
    struct cell *cell;
    size_t bytes;    /* of all cells and their trays */
    unsigned spins;  /* tries before a waiting thread lets others run */
    unsigned yields; /* times it does so before it sleeps */
};

static inline void lane_open(struct lane *lane, uint64_t cells, const struct params *p)
{
    const uint64_t batch = p->batch;
    const bool crowded = p->threads > processors_allowed();
    const size_t tray_bytes = (batch * sizeof(void *) + 127) / 128 * 128;
    *lane = (struct lane){.cells = cells,
                          .bytes = cells * (sizeof(struct cell) + tray_bytes),
                          .spins = crowded ? 8 : 64,
                          .yields = crowded ? 2 : 2000};
    lane->cell = own_memory(lane->bytes);
    char *tray = (char *)(lane->cell + cells);
    for (uint64_t i = 0; i < cells; i++, tray += tray_bytes)
        lane->cell[i].tray = (void **)(void *)tray;
}

/* Trays wander: one that a thread brought along must outlive the lane, and the
 * thread's last tray is one of the lane's. Close when all threads are joined. */
static inline void lane_close(struct lane *lane) { own_release(lane->cell, lane->bytes); }

static inline void spin_hint(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static inline void cell_wait(const struct lane *lane, struct cell *cell, uint32_t wanted)
{
    for (unsigned tries = 0;; tries++) {
        uint32_t seen = atomic_load_explicit(&cell->turn, memory_order_acquire);
        if (seen == wanted)
            return;
        if (tries < lane->spins) {
            spin_hint();
        } else if (tries < lane->spins + lane->yields) {
            sched_yield();
        } else {
            /* Counted before the kernel compares `turn`, read after `turn` has changed: one of
             * the two sides sees the other. */
            atomic_fetch_add(&cell->sleepers, 1);
            syscall(SYS_futex, &cell->turn, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
            atomic_fetch_sub(&cell->sleepers, 1);
        }
    }
}

static inline void **cell_exchange(const struct lane *lane, struct cell *cell, uint32_t turn,
                                   void **tray)
{
    cell_wait(lane, cell, turn);
    void **there = cell->tray;
    cell->tray = tray;
    atomic_store(&cell->turn, turn + 1);
    if (atomic_load(&cell->sleepers) > 0)
        syscall(SYS_futex, &cell->turn, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
    return there;
}

static inline void **lane_put(struct lane *lane, uint64_t ticket, void **full)
{
    return cell_exchange(lane, &lane->cell[ticket % lane->cells],
                         (uint32_t)(ticket / lane->cells * 2), full);
}

static inline void **lane_take(struct lane *lane, uint64_t ticket, void **empty)
{
    return cell_exchange(lane, &lane->cell[ticket % lane->cells],
                         (uint32_t)(ticket / lane->cells * 2 + 1), empty);
}

static ALWAYS_INLINE uint64_t tray_fill_loop(void **tray, const struct params *p,
                                             struct random *from, enum touch touch, bool check)
{
    struct random rng = *from;
    const uint64_t batch = p->batch, min = p->min, span = params_span(p);
    uint64_t sum = 0;
    for (uint64_t i = 0; i < batch; i++) {
        size_t size = size_draw(random_next(&rng), min, span);
        sum += size;
        tray[i] = block_make(size, touch, check);
    }
    *from = rng;
    return sum;
}

/* Gives the sum of the sizes. */
static inline uint64_t tray_fill(void **tray, const struct params *p, struct random *rng)
{
    return SPECIALISE(tray_fill_loop, p, tray, p, rng);
}

/* `turn` is the order within the tray, or null for the order the blocks came in. */
static inline void tray_empty(void **tray, const struct params *p, const uint32_t *turn)
{
    const uint64_t batch = p->batch;
    if (p->check)
        for (uint64_t i = 0; i < batch; i++)
            block_drop(tray[turn != NULL ? turn[i] : i], p, true);
    else if (turn != NULL)
        for (uint64_t i = 0; i < batch; i++)
            block_drop(tray[turn[i]], p, false);
    else
        for (uint64_t i = 0; i < batch; i++)
            block_drop(tray[i], p, false);
}

/* Trays that a thread asks for and hands over; at least one, however small the scale. */
static inline uint64_t trays_of(const struct params *p)
{
    return p->iterations > p->batch ? p->iterations / p->batch : 1;
}

/* What a row leaves resident once its blocks are freed and its threads are gone. */
static inline void resident_add(struct outcome *out)
{
    outcome_add(out, "resident-end", "KiB", (double)status_kib("VmRSS:"));
}

#endif

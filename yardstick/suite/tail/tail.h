/*
 * The tail: every single call of malloc and free is timed, and what counts is how long the slowest
 * ones take. yardstick/docs/tail.md says what each row does.
 *
 *   timer.c         what a call took, by the clock and by processor time; the figures
 *   work_heap.c     one thread: random mixed; and while freed memory goes back
 *   work_threads.c  several, which free each other's blocks
 */
#ifndef SUITE_TAIL_H
#define SUITE_TAIL_H

#include "block.h"
#include "histogram.h"
#include "random.h"

/* `iterations` calls of random mixed over `slots`. */
work_fn work_tail_mixed;
/* Nine of ten of `slots` blocks freed at random, then `iterations` calls of random mixed over
 * `batch` others. */
work_fn work_tail_survivors;
/* `iterations` blocks replaced by each thread, in trays of `slots`. */
work_fn work_tail_threads;

/*
 * ---- timer.c
 *
 * A call during which its thread had to wait for a processor is long by the clock, whatever the
 * allocator did; by the thread's processor time it is not. Reading that time around each call would
 * not do. It is a system call, which takes longer than most mallocs and is interrupted more often:
 * in a second pass of the rows that did so, on a busy machine, one in 1,000 calls of a malloc that
 * does nothing took 2 to 28 us. A sample of the calls would be as coarse, and would miss the worst.
 *
 * So each call is timed by the clock. A thread that loses its processor is away for more than
 * SWITCH_NS, so a shorter call has as much processor time. After a longer call processor time is
 * read, and what the thread was away since the last reading is subtracted. There is a reading after
 * READ_EVERY short calls too: an absence before the call is then rarely taken for one during it.
 */
enum { SWITCH_NS = 1000, READ_EVERY = 256 };

/* Of one thread. */
struct timer {
    struct histogram clock, processor;
    uint64_t empty;                      /* nanoseconds of two readings with nothing between */
    uint64_t read_clock, read_processor; /* the last reading of both */
    unsigned calls;                      /* since then */
};

/* One for each thread of the row. */
struct timer *timers_make(const struct params *p);
/* Reads both clocks: by the thread that the timer belongs to, before its first timed call. */
void timer_read(struct timer *t);
/* What the thread was away from a processor since the last reading; reads anew. */
uint64_t timer_away(struct timer *t);
/* Adds the figures of all threads together. */
void timers_report(struct timer *timer, const struct params *p, struct outcome *out);
void timers_release(struct timer *timer, const struct params *p);

/* When a call has returned that began at `begin`. */
static ALWAYS_INLINE void timer_add(struct timer *t, uint64_t begin)
{
    const uint64_t both = clock_now() - begin;
    const uint64_t spent = both > t->empty ? both - t->empty : 0;
    histogram_add(&t->clock, spent);
    if (spent < SWITCH_NS) {
        histogram_add(&t->processor, spent);
        if (++t->calls == READ_EVERY)
            timer_read(t);
        return;
    }
    const uint64_t away = timer_away(t);
    histogram_add(&t->processor, spent > away ? spent - away : 0);
}

/* The block is written when the clock has been read: page faults of a new block are in no figure.
 */
static ALWAYS_INLINE void *timed_make(struct timer *t, size_t size, const struct params *p)
{
    const uint64_t begin = clock_now();
    unsigned char *block = malloc(size);
    KEEP(block);
    timer_add(t, begin);
    if (__builtin_expect(block == NULL, 0))
        give_up(EXIT_NO_MEMORY, "malloc(%zu) found no memory", size);
    if (p->check)
        block_stamp(block, size, p->touch);
    else
        block_touch(block, size, p->touch);
    KEEP(block);
    return block;
}

static ALWAYS_INLINE void timed_drop(struct timer *t, void *block, const struct params *p)
{
    if (p->check) {
        block_verify(block, p);
        memset(block, 0, sizeof(uint32_t)); /* found again, if somebody else holds it too */
    }
    const uint64_t begin = clock_now();
    free(block);
    timer_add(t, begin);
}

#endif

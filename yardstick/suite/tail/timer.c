/* What single calls took, by the clock and by the processor time of the thread. */
#include "tail.h"

enum {
    EMPTY_PAIRS = 10001,
    BOTH_NS = 2000, /* the clocks belong together if they were read within that time */
    BOTH_TRIES = 4,
};

/* The median of many, as one of them may be interrupted. */
static uint64_t empty_measure(void)
{
    struct histogram *spent = own_memory(sizeof *spent);
    for (unsigned i = 0; i < EMPTY_PAIRS; i++) {
        const uint64_t begin = clock_now();
        histogram_add(spent, clock_now() - begin);
    }
    const uint64_t middle = histogram_quantile(spent, 0.5);
    own_release(spent, sizeof *spent);
    return middle;
}

struct timer *timers_make(const struct params *p)
{
    struct timer *timer = own_memory(p->threads * sizeof *timer);
    for (unsigned i = 0; i < p->threads; i++)
        timer[i].empty = empty_measure();
    return timer;
}

void timer_read(struct timer *t)
{
    for (unsigned i = 0; i < BOTH_TRIES; i++) {
        const uint64_t before = clock_now();
        t->read_processor = clock_of(CLOCK_THREAD_CPUTIME_ID);
        const uint64_t after = clock_now();
        t->read_clock = before + (after - before) / 2;
        if (after - before < BOTH_NS)
            break;
    }
    t->calls = 0;
}

uint64_t timer_away(struct timer *t)
{
    const uint64_t clock = t->read_clock, processor = t->read_processor;
    timer_read(t);
    const uint64_t passed = t->read_clock - clock, used = t->read_processor - processor;
    /* Less is no absence, but the readings' own time. */
    return passed > used + SWITCH_NS ? passed - used : 0;
}

/* Beside nothing at all every ratio would be without bounds. */
static double at_least_one(uint64_t ns) { return ns > 0 ? (double)ns : 1; }

void timers_report(struct timer *timer, const struct params *p, struct outcome *out)
{
    static const struct {
        double share;
        const char *clock, *processor;
    } figures[] = {
        {0.5, "p50", "cpu-p50"},
        {0.99, "p99", "cpu-p99"},
        {0.999, "p99.9", "cpu-p99.9"},
        {1, "worst", "cpu-worst"},
    };
    for (unsigned i = 1; i < p->threads; i++) {
        histogram_merge(&timer->clock, &timer[i].clock);
        histogram_merge(&timer->processor, &timer[i].processor);
    }
    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++) {
        const double share = figures[i].share;
        outcome_add(out, figures[i].clock, "ns",
                    at_least_one(histogram_quantile(&timer->clock, share)));
        outcome_add(out, figures[i].processor, "ns",
                    at_least_one(histogram_quantile(&timer->processor, share)));
    }
}

void timers_release(struct timer *timer, const struct params *p)
{
    own_release(timer, p->threads * sizeof *timer);
}

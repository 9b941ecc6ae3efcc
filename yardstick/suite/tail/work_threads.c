/* The tail of threads that free each other's blocks. */
#include "exchange.h"
#include "tail.h"

struct exchanged {
    struct mailbox *mailbox;
    struct timer *timer; /* one for each thread */
};

static uint64_t replace_timed(void **tray, struct worker *w, uint64_t turns, struct random *rng)
{
    const struct params *p = w->params;
    struct timer *timer = &((struct exchanged *)w->shared)->timer[w->index];
    uint64_t sum = 0;
    for (uint64_t i = 0; i < turns; i++) {
        const uint64_t bits = random_next(rng);
        void **s = &tray[random_low(bits, p->slots)];
        const size_t size = size_draw(bits, p->min, params_span(p));
        sum += size;
        timed_drop(timer, *s, p);
        *s = timed_make(timer, size, p);
    }
    return sum;
}

static void threads_body(struct worker *w)
{
    struct exchanged *e = w->shared;
    timer_read(&e->timer[w->index]);
    exchange_work(w, e->mailbox, replace_timed);
}

void work_tail_threads(const struct params *p, struct outcome *out)
{
    uint64_t filled = 0;
    struct exchanged e = {.mailbox = mailboxes_make(p, &filled), .timer = timers_make(p)};
    const struct worker_calls calls = {.body = threads_body};
    workers_run(p, &calls, &e, out);
    out->checksum += filled;
    timers_report(e.timer, p, out);
    timers_release(e.timer, p);
    mailboxes_release(e.mailbox, p);
}

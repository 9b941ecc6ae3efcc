/* Threads that do one step after the other, and sleep in between. */
#include "memory.h"

enum { CREW_STACK = 256 * 1024, STACK_TOUCHED = 16 * 1024 };

struct hand {
    struct crew *crew;
    pthread_t thread;
    unsigned index;
};

struct crew {
    unsigned threads;
    void *shared;
    crew_step *step; /* lock: the barriers; null ends the threads */
    pthread_barrier_t begin, done;
    struct hand hand[];
};

/* A stack's pages come when they are first used: here, before any baseline. */
static void stack_touch(void)
{
    unsigned char stack[STACK_TOUCHED];
    for (size_t at = 0; at < sizeof stack; at += 512)
        stack[at] = 1;
    KEEP(stack);
}

static void *hand_main(void *argument)
{
    struct hand *h = argument;
    struct crew *c = h->crew;
    stack_touch();
    for (;;) {
        pthread_barrier_wait(&c->done);
        pthread_barrier_wait(&c->begin);
        if (c->step == NULL)
            return NULL;
        c->step(h->index, c->shared);
    }
}

static size_t crew_bytes(unsigned threads)
{
    return sizeof(struct crew) + threads * sizeof(struct hand);
}

struct crew *crew_start(const struct params *p, void *shared)
{
    struct crew *c = own_touched(crew_bytes(p->threads));
    c->threads = p->threads;
    c->shared = shared;
    stack_touch();
    if (c->threads == 1)
        return c;
    pthread_barrier_init(&c->begin, NULL, c->threads + 1);
    pthread_barrier_init(&c->done, NULL, c->threads + 1);
    for (unsigned i = 0; i < c->threads; i++) {
        c->hand[i] = (struct hand){.crew = c, .index = i};
        c->hand[i].thread = worker_start(p, i, CREW_STACK, hand_main, &c->hand[i]);
    }
    pthread_barrier_wait(&c->done);
    return c;
}

void crew_do(struct crew *c, crew_step *step)
{
    if (c->threads == 1) {
        step(0, c->shared);
        return;
    }
    c->step = step;
    pthread_barrier_wait(&c->begin);
    pthread_barrier_wait(&c->done);
}

void crew_end(struct crew *c)
{
    if (c->threads > 1) {
        c->step = NULL;
        pthread_barrier_wait(&c->begin);
        for (unsigned i = 0; i < c->threads; i++)
            pthread_join(c->hand[i].thread, NULL);
        pthread_barrier_destroy(&c->begin);
        pthread_barrier_destroy(&c->done);
    }
    own_release(c, crew_bytes(c->threads));
}

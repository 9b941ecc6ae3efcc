/*
 * Threads of a row: all made and prepared before the clock starts, all joined
 * before it stops, so that an allocator's work at thread exit is in the time.
 *
 * Each is bound to a processor. Left to the kernel, two threads that hand
 * blocks to each other run now on one core and now on two, as neighbours come
 * and go, and the second can cost several times the first.
 */
#include "suite.h"

#include <pthread.h>
#include <sched.h>
#include <unistd.h>

struct team {
    const struct worker_calls *calls;
    pthread_barrier_t ready; /* all are prepared */
    pthread_barrier_t go;    /* the clock runs */
};

struct member {
    _Alignas(128) struct worker worker; /* two cache lines: neighbours are fetched in pairs */
    struct team *team;
    pthread_t thread;
};

static void *member_main(void *argument)
{
    struct member *m = argument;
    if (m->team->calls->prepare != NULL)
        m->team->calls->prepare(&m->worker);
    pthread_barrier_wait(&m->team->ready);
    pthread_barrier_wait(&m->team->go);
    m->team->calls->body(&m->worker);
    return NULL;
}

unsigned processors_allowed(void)
{
    cpu_set_t allowed;
    if (sched_getaffinity(getpid(), sizeof allowed, &allowed) != 0)
        return 1;
    return (unsigned)CPU_COUNT(&allowed);
}

/* The `index`th in turn; false where threads are left to the kernel. */
static bool processor_of(const struct params *p, unsigned index, cpu_set_t *one)
{
    cpu_set_t allowed;
    if (p->unpin || sched_getaffinity(getpid(), sizeof allowed, &allowed) != 0)
        return false;
    unsigned skip = index % (unsigned)CPU_COUNT(&allowed), cpu = 0;
    while (!CPU_ISSET(cpu, &allowed) || skip-- > 0)
        cpu++;
    CPU_ZERO(one);
    CPU_SET(cpu, one);
    return true;
}

void worker_pin(const struct params *p, unsigned index, pthread_attr_t *attributes)
{
    cpu_set_t one;
    if (processor_of(p, index, &one))
        pthread_attr_setaffinity_np(attributes, sizeof one, &one);
}

void caller_pin(const struct params *p, unsigned index)
{
    cpu_set_t one;
    if (processor_of(p, index, &one))
        sched_setaffinity(0, sizeof one, &one);
}

pthread_t worker_start(const struct params *p, unsigned index, size_t stack, void *(*main)(void *),
                       void *argument)
{
    pthread_t thread;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    if (stack > 0)
        pthread_attr_setstacksize(&attributes, stack);
    worker_pin(p, index, &attributes);
    if (pthread_create(&thread, &attributes, main, argument) != 0)
        give_up(EXIT_SYSTEM, "thread %u of %u could not be made", index + 1, p->threads);
    pthread_attr_destroy(&attributes);
    return thread;
}

void workers_run(const struct params *p, const struct worker_calls *calls, void *shared,
                 struct outcome *out)
{
    struct member *member = own_memory(p->threads * sizeof *member);
    struct team team = {.calls = calls};
    pthread_barrier_init(&team.ready, NULL, p->threads + 1);
    pthread_barrier_init(&team.go, NULL, p->threads + 1);

    for (unsigned i = 0; i < p->threads; i++) {
        member[i].worker = (struct worker){.params = p, .shared = shared, .index = i};
        member[i].team = &team;
        member[i].thread = worker_start(p, i, 0, member_main, &member[i]);
    }
    pthread_barrier_wait(&team.ready);
    clock_start();
    pthread_barrier_wait(&team.go);
    for (unsigned i = 0; i < p->threads; i++)
        pthread_join(member[i].thread, NULL);
    clock_stop(out);

    for (unsigned i = 0; i < p->threads; i++) {
        out->operations += member[i].worker.operations;
        /* Order matters: two threads that swapped their work would show. */
        out->checksum = out->checksum * 31 + member[i].worker.checksum;
    }
    pthread_barrier_destroy(&team.ready);
    pthread_barrier_destroy(&team.go);
    own_release(member, p->threads * sizeof *member);
}

/*
 * Threads and children that begin and end: one after the other, each waited
 * for, so that an operation is a whole life.
 */
#include "loops.h"
#include "work.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- threads */

struct life {
    const struct params *params;
    void **slot; /* for the blocks of a life; one lives at a time */
    uint64_t sum;
    double first; /* nanoseconds of the first malloc */
};

typedef void *life_main(void *life);

/* One after the other, on the caller's own processor, as what is waited for needs no other: to wake
 * one takes longer than most lives, and now and then it isn't needed. `first` has room for that of
 * each, or is null. */
static void lives_run(life_main *main, struct life *life, double *first, struct outcome *out)
{
    const struct params *p = life->params;
    /* Before the clock starts: to hold a processor's number attributes ask malloc for memory. */
    pthread_attr_t attributes;
    caller_pin(p, 0);
    pthread_attr_init(&attributes);
    worker_pin(p, 0, &attributes);
    clock_start();
    for (uint64_t i = 0; i < p->iterations; i++) {
        pthread_t thread;
        if (pthread_create(&thread, &attributes, main, life) != 0)
            give_up(EXIT_SYSTEM, "a thread could not be made");
        pthread_join(thread, NULL);
        if (first != NULL)
            first[i] = life->first;
    }
    clock_stop(out);
    pthread_attr_destroy(&attributes);
    out->operations = p->iterations;
}

static void *idle_main(void *argument)
{
    KEEP(argument);
    return NULL;
}

void work_thread_idle(const struct params *p, struct outcome *out)
{
    struct life life = {.params = p};
    lives_run(idle_main, &life, NULL, out);
    out->checksum = p->iterations;
}

static void *busy_main(void *argument)
{
    struct life *life = argument;
    const struct params *p = life->params;
    struct random rng = random_start(p->seed, 0);
    life->sum += slots_fill(life->slot, p, &rng);
    slots_empty(life->slot, p);
    return NULL;
}

void work_thread_start(const struct params *p, struct outcome *out)
{
    struct life life = {.params = p, .slot = own_memory(p->slots * sizeof(void *))};
    lives_run(busy_main, &life, NULL, out);
    out->checksum = life.sum;
    own_release(life.slot, p->slots * sizeof(void *));
}

/* Read twice before: the clock's own code and page are in the cache, and what a reading takes is
 * known. */
static void *first_main(void *argument)
{
    struct life *life = argument;
    const struct params *p = life->params;
    clock_now();
    uint64_t before = clock_now();
    uint64_t begin = clock_now();
    void *block = block_make(p->min, p->touch, p->check);
    uint64_t end = clock_now();
    block_drop(block, p, p->check);
    life->first = (double)(end - begin) - (double)(begin - before);
    return NULL;
}

/* In place: the C library's sort would ask the allocator for memory. */
static double median(double *value, uint64_t count)
{
    for (uint64_t gap = count / 2; gap > 0; gap /= 2)
        for (uint64_t i = gap; i < count; i++) {
            double moved = value[i];
            uint64_t at = i;
            for (; at >= gap && value[at - gap] > moved; at -= gap)
                value[at] = value[at - gap];
            value[at] = moved;
        }
    return value[count / 2];
}

void work_thread_first(const struct params *p, struct outcome *out)
{
    double *first = own_memory(p->iterations * sizeof *first);
    struct life life = {.params = p};
    lives_run(first_main, &life, first, out);
    double middle = median(first, p->iterations);
    outcome_add(out, "first-malloc", "ns", middle > 1 ? middle : 1);
    out->checksum = p->iterations * p->min;
    own_release(first, p->iterations * sizeof *first);
}

/* ---- children */

static noreturn void child_run(const struct params *p, struct random rng)
{
    for (uint64_t i = 0; i < p->batch; i++) {
        size_t size = size_draw(random_next(&rng), p->min, params_span(p));
        block_drop(block_make(size, p->touch, p->check), p, p->check);
    }
    _exit(0);
}

static long faults_of(int whom)
{
    struct rusage usage;
    getrusage(whom, &usage);
    return usage.ru_minflt;
}

void work_fork(const struct params *p, struct outcome *out)
{
    caller_pin(p, 0);
    void **slot = own_memory(p->slots * sizeof *slot);
    struct random rng = random_start(p->seed, 0);
    const uint64_t sum = slots_fill(slot, p, &rng);
    const long of_children = faults_of(RUSAGE_CHILDREN);
    clock_start();
    for (uint64_t i = 0; i < p->iterations; i++) {
        pid_t child = fork();
        if (child == 0)
            child_run(p, rng);
        int status;
        if (child < 0 || waitpid(child, &status, 0) != child)
            give_up(EXIT_SYSTEM, "no child could be made, or waited for");
        if (status != 0)
            give_up(EXIT_CONTENT, "a child ended with status %d", status);
    }
    clock_stop(out);
    const long faults = out->minor_faults + faults_of(RUSAGE_CHILDREN) - of_children;
    outcome_add(out, "fork-faults", "faults", (double)faults / (double)p->iterations);
    out->operations = p->iterations;
    out->checksum = sum + p->iterations;

    slots_empty(slot, p);
    own_release(slot, p->slots * sizeof *slot);
}

/* Thousands of short threads: each works on the slots that earlier threads have left, whose blocks
 * it so frees or resizes after their makers are gone, hands blocks to others and ends. Some only
 * free, some do nothing, some go on allocating in the destructors of thread-specific data after
 * the allocator's own (traps 34, 37), as often as these are called. At the end the main thread
 * leaves by pthread_exit and another one ends the program (trap 36). */
#include "base/atomic.h"
#include "work.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CELLS 1024
#define SLOTS 128
#define AT_A_TIME_MAX 256
#define KEYS 3

static struct {
    uint64_t threads, at_a_time, operations, seed, timeout, alignment, late, main_exits;
    const char *in_force;
    struct exchange exchange;
    struct seat *seats;
    pthread_key_t keys[KEYS];
    double start;
} run = {
    .threads = 5000,
    .at_a_time = 16,
    .operations = 300,
    .seed = 1,
    .timeout = 1500,
    .alignment = 16,
    .late = 4,
    .main_exits = 1,
};

/* One thread's life; there is one of it for each seat. */
struct life {
    struct seat *seat;
    uint64_t number;
    unsigned rounds[KEYS]; /* calls of the destructors */
    pthread_t thread;
};

static void late_work(struct life *life, unsigned key)
{
    struct seat *seat = life->seat;
    life->rounds[key]++;
    if (life->number % 3 == 0)
        seat_clear(seat, &seat->worker);
    else
        seat_work(seat, 20);
    if (life->rounds[key] < run.late && pthread_setspecific(run.keys[key], life) != 0)
        fail("pthread_setspecific failed in a destructor");
}

static void late_0(void *life) { late_work(life, 0); }
static void late_1(void *life) { late_work(life, 1); }
static void late_2(void *life) { late_work(life, 2); }

static void set_keys(struct life *life)
{
    for (unsigned i = 0; i < KEYS; i++)
        if (pthread_setspecific(run.keys[i], life) != 0)
            fail("pthread_setspecific failed");
}

static void *thread_main(void *argument)
{
    struct life *life = argument;
    struct seat *seat = life->seat;
    switch (life->number % 8) {
    case 0: /* never meets the allocator */
        break;
    case 1: /* only frees */
        seat_clear(seat, &seat->worker);
        break;
    case 2: /* its first calls are late ones */
        set_keys(life);
        break;
    case 3:
    case 4:
        set_keys(life);
        seat_work(seat, run.operations);
        break;
    case 5: /* a burst of frees at the end */
        seat_work(seat, run.operations);
        seat_clear(seat, &seat->worker);
        break;
    case 6:
        seat_work(seat, run.operations);
        pthread_exit(NULL);
    default:
        seat_work(seat, run.operations);
        break;
    }
    return NULL;
}

static void start(struct life *life, uint64_t number)
{
    life->number = number;
    memset(life->rounds, 0, sizeof life->rounds);
    life->seat->random = random_start(run.seed, life->seat->worker.number, number);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 512 * KiB);
    int error = pthread_create(&life->thread, &attributes, thread_main, life);
    if (error != 0)
        fail("pthread_create: %s", strerror(error));
    pthread_attr_destroy(&attributes);
}

static void join(const struct life *life)
{
    int error = pthread_join(life->thread, NULL);
    if (error != 0)
        fail("pthread_join: %s", strerror(error));
    unsigned kind = (unsigned)(life->number % 8);
    if (kind < 2 || kind > 4)
        return;
    for (unsigned i = 0; i < KEYS; i++)
        if (life->rounds[i] != run.late)
            fail("late destructor %u of thread %llu: expected %llu calls, found %u", i,
                 (unsigned long long)life->number, (unsigned long long)run.late, life->rounds[i]);
}

static void prepare(void)
{
    exchange_make(&run.exchange, CELLS, 64 * MiB);
    run.seats = pages_from_kernel(run.at_a_time * sizeof *run.seats);
    for (unsigned i = 0; i < run.at_a_time; i++)
        seat_make(&run.seats[i], i + 1, SLOTS, &run.exchange);
    void (*const destructors[KEYS])(void *) = {late_0, late_1, late_2};
    for (unsigned i = 0; i < KEYS; i++)
        if (pthread_key_create(&run.keys[i], destructors[i]) != 0)
            fail("pthread_key_create failed");
}

/* The end of the program, by whichever thread is left. */
static void *finish(void *main_thread)
{
    struct worker me = {0, 0};
    if (main_thread != NULL && pthread_join(*(pthread_t *)main_thread, NULL) != 0)
        fail("pthread_join of the main thread failed");
    uint64_t received = 0, calls = 0;
    for (uint64_t i = 0; i < run.at_a_time; i++) {
        seat_clear(&run.seats[i], &me);
        received += run.seats[i].received;
        calls += run.seats[i].calls;
    }
    exchange_clear(&run.exchange, &me);
    printf("stress_threads: done: %llu threads, %llu calls of the allocator, %llu blocks received "
           "from other threads, %.1f s, peak RSS %zu MiB\n",
           (unsigned long long)run.threads, (unsigned long long)calls, (unsigned long long)received,
           seconds_now() - run.start, peak_rss_mib());
    exit(0);
}

static void read_options(int argc, char **argv)
{
    static const struct known_option known[] = {
        {"--threads", &run.threads, NULL},
        {"--at-a-time", &run.at_a_time, NULL},
        {"--operations", &run.operations, NULL},
        {"--seed", &run.seed, NULL},
        {"--timeout", &run.timeout, NULL},
        {"--alignment", &run.alignment, NULL},
        {"--late", &run.late, NULL},
        {"--main-exits", &run.main_exits, NULL},
        {"--in-force", NULL, &run.in_force},
        {NULL, NULL, NULL},
    };
    options_read("stress_threads", argc, argv, 1, known);
    if (run.at_a_time == 0 || run.at_a_time > AT_A_TIME_MAX || run.alignment == 0 ||
        run.late == 0 || run.late > 4)
        fail("stress_threads: --at-a-time must be 1 to %d, --late 1 to 4", AT_A_TIME_MAX);
    least_alignment = (size_t)run.alignment;
}

int main(int argc, char **argv)
{
    static struct life lives[AT_A_TIME_MAX];
    read_options(argc, argv);
    show_malloc_in_force("stress_threads", run.in_force);
    watchdog((unsigned)run.timeout);
    run.start = seconds_now();
    prepare();

    /* What ended threads kept would show as memory that grows with their number. */
    size_t early_mib = 0;
    for (uint64_t number = 0; number < run.threads; number++) {
        struct life *life = &lives[number % run.at_a_time];
        if (life->seat != NULL)
            join(life);
        life->seat = &run.seats[number % run.at_a_time];
        start(life, number);
        if (number == run.threads / 4)
            early_mib = peak_rss_mib();
    }
    for (uint64_t i = 0; i < run.at_a_time; i++)
        if (lives[i].seat != NULL)
            join(&lives[i]);
    size_t late_mib = peak_rss_mib();
    /* ThreadSanitizer and qemu remember threads in memory of their own. */
    if (!UNDER_TSAN && !UNDER_EMULATOR && late_mib > early_mib + early_mib / 2 + 64)
        fail("memory grows with ended threads: peak RSS after a quarter of %llu threads %zu MiB, "
             "expected at most half more and 64 MiB at the end, found %zu MiB",
             (unsigned long long)run.threads, early_mib, late_mib);

    if (!run.main_exits)
        finish(NULL);
    static pthread_t main_thread;
    pthread_t last;
    main_thread = pthread_self();
    if (pthread_create(&last, NULL, finish, &main_thread) != 0)
        fail("pthread_create failed");
    pthread_exit(NULL);
}

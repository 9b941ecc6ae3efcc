/* Fork under load: threads allocate and exchange blocks while the main thread forks again and
 * again; child.c has what the children do. Handlers of pthread_atfork allocate too (trap 41). */
#include "child.h"
#include "names.h"
#include "work.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CELLS 512
#define SLOTS 256

static struct {
    uint64_t threads, forks, seed, timeout, alignment;
    const char *in_force;
    struct exchange exchange;
    struct seat *seats; /* [0] is the main thread's */
    _Atomic int stop;
} run = {.threads = 8, .forks = 2000, .seed = 1, .timeout = 1500, .alignment = 16};

/* Only the main thread forks: no lock. */
static void *held_over_fork;

static void before_fork(void) { held_over_fork = do_malloc(777); }

static void after_fork(void)
{
    void *other = do_malloc(12345);
    do_free(held_over_fork);
    do_free(other);
}

static void *thread_main(void *argument)
{
    struct seat *seat = argument;
    /* Lower than the thread that forks, which would wait long for its turn otherwise. */
    setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), 10);
    while (!atomic_load_explicit(&run.stop, memory_order_relaxed))
        seat_work(seat, 256);
    seat_clear(seat, &seat->worker);
    return NULL;
}

static void read_options(int argc, char **argv)
{
    static const struct known_option known[] = {
        {"--threads", &run.threads, NULL},
        {"--forks", &run.forks, NULL},
        {"--seed", &run.seed, NULL},
        {"--timeout", &run.timeout, NULL},
        {"--alignment", &run.alignment, NULL},
        {"--in-force", NULL, &run.in_force},
        {NULL, NULL, NULL},
    };
    if (argc > 1 && strcmp(argv[1], CHILD_NOTHING) == 0)
        exit(0);
    options_read("stress_fork", argc, argv, 1, known);
    if (run.threads > 256 || run.alignment == 0)
        fail("stress_fork: --threads must be at most 256, --alignment at least 1");
    least_alignment = (size_t)run.alignment;
}

int main(int argc, char **argv)
{
    pthread_t threads[256];
    read_options(argc, argv);
    show_malloc_in_force("stress_fork", run.in_force);
    watchdog((unsigned)run.timeout);
    /* The allocator's own handlers first: tests/api/fork.c has the other order. */
    do_free(do_malloc(1));
    if (pthread_atfork(before_fork, after_fork, after_fork) != 0)
        fail("pthread_atfork failed");

    struct child_times times = {0};
    double start = seconds_now(), told = start;
    exchange_make(&run.exchange, CELLS, 8 * MiB);
    run.seats = pages_from_kernel((run.threads + 1) * sizeof *run.seats);
    for (unsigned i = 0; i <= run.threads; i++) {
        seat_make(&run.seats[i], i, SLOTS, &run.exchange);
        run.seats[i].random = random_start(run.seed, i, 0);
    }
    for (unsigned i = 0; i < run.threads; i++)
        if (pthread_create(&threads[i], NULL, thread_main, &run.seats[i + 1]) != 0)
            fail("pthread_create failed");

    for (uint64_t number = 1; number <= run.forks; number++) {
        seat_work(&run.seats[0], 200);
        child_run(&run.seats[0], run.seed, number, &times);
        if (seconds_now() - told > 5) {
            told = seconds_now();
            printf("stress_fork: %llu of %llu forks, %.1f s, RSS %zu MiB\n",
                   (unsigned long long)number, (unsigned long long)run.forks, told - start,
                   rss_mib());
            fflush(stdout);
        }
    }

    atomic_store(&run.stop, 1);
    uint64_t calls = 0;
    for (unsigned i = 0; i < run.threads; i++)
        pthread_join(threads[i], NULL);
    seat_clear(&run.seats[0], &run.seats[0].worker);
    exchange_clear(&run.exchange, &run.seats[0].worker);
    for (unsigned i = 0; i <= run.threads; i++)
        calls += run.seats[i].calls;
    printf("stress_fork: done: %llu forks under %llu threads, %llu calls of the allocator in the "
           "parent, %.1f s, peak RSS %zu MiB; microseconds: fork itself %.0f, at most %.0f, until "
           "the child has ended %.0f; heap walk: %s\n",
           (unsigned long long)run.forks, (unsigned long long)run.threads,
           (unsigned long long)calls, seconds_now() - start, peak_rss_mib(),
           times.forking * 1e6 / (double)times.children, times.longest * 1e6,
           times.living * 1e6 / (double)times.children,
           expect_sound_heap("at the end") ? "whole" : "there is none");
    return 0;
}

/* Stress with content checks: threads allocate, resize and free blocks of all sizes, hand them to
 * each other, end and are replaced, while every block must keep what was written into it.
 * README.md says how to run it at length.
 *
 *   main -> run_phase -> lives_start        lives.c: generations of threads on a seat
 *                          -> work_generation
 *                               -> seat_work      work.c: slots and exchange
 *                                    -> block_*   block.c: one call of the allocator, its checks
 *
 * With one thread the main thread does the work itself, so that the process stays
 * single-threaded. */
#include "lives.h"
#include "work.h"

#include <stdio.h>

#define CELLS 2048
#define THREADS_MAX 1024

static struct run {
    uint64_t threads, operations, seed, phases, live_mb, generations, timeout, alignment;
    const char *in_force;
    struct exchange exchange;
    struct seat *seats;
    uint64_t per_generation; /* operations of one thread in one generation */
    uint64_t phase;

    struct lives lives;
} run = {
    .threads = 8,
    .operations = 2000000,
    .seed = 1,
    .phases = 4,
    .live_mb = 256,
    .generations = 4,
    .alignment = 16,
};

static void work_generation(unsigned number, uint64_t generation)
{
    struct seat *seat = &run.seats[number];
    seat->random =
        random_start(run.seed, seat->worker.number, run.phase * run.generations + generation);
    seat_work(seat, run.per_generation);
    /* In every other phase the threads free their slots themselves; else main does, after they
     * have ended. */
    if (generation + 1 == run.generations && run.phase % 2 == 0)
        seat_clear(seat, &seat->worker);
}

static void run_phase(const struct worker *me)
{
    if (run.threads == 1) {
        for (uint64_t generation = 0; generation < run.generations; generation++)
            work_generation(0, generation);
    } else {
        lives_start(&run.lives);
        while (!lives_ended(&run.lives, 60))
            ;
    }
    for (uint64_t i = 0; i < run.threads; i++)
        seat_clear(&run.seats[i], me);
    exchange_clear(&run.exchange, me);
    size_t left = atomic_load(&run.exchange.large_bytes);
    if (left != 0)
        fail("the test's own books: expected 0 bytes of large blocks, found %zu", left);
}

/* A third of the memory for the small blocks in the slots, of which half are full and hold about
 * 2 KiB; the rest for large blocks. */
static void prepare(void)
{
    size_t live = (size_t)run.live_mb * MiB;
    size_t slots = live / 3 / run.threads / KiB;
    slots = slots < 16 ? 16 : slots > 8192 ? 8192 : slots;
    exchange_make(&run.exchange, CELLS, live - live / 3);
    run.seats = pages_from_kernel(run.threads * sizeof *run.seats);
    for (unsigned i = 0; i < run.threads; i++)
        seat_make(&run.seats[i], i + 1, slots, &run.exchange);
    run.lives = (struct lives){
        .seats = (unsigned)run.threads,
        .generations = run.generations,
        .live = work_generation,
        .each = pages_from_kernel(run.threads * sizeof(struct life)),
    };
    run.per_generation = run.operations / run.threads / run.phases / run.generations;
    if (run.per_generation == 0)
        run.per_generation = 1;
}

static void read_options(int argc, char **argv)
{
    static const struct known_option known[] = {
        {"--threads", &run.threads, NULL},
        {"--operations", &run.operations, NULL},
        {"--seed", &run.seed, NULL},
        {"--phases", &run.phases, NULL},
        {"--generations", &run.generations, NULL},
        {"--live-mb", &run.live_mb, NULL},
        {"--timeout", &run.timeout, NULL},
        {"--alignment", &run.alignment, NULL},
        {"--in-force", NULL, &run.in_force},
        {NULL, NULL, NULL},
    };
    options_read("stress", argc, argv, 1, known);
    least_alignment = (size_t)run.alignment;
    if (run.alignment == 0 || run.threads == 0 || run.threads > THREADS_MAX || run.phases == 0 ||
        run.generations == 0 || run.live_mb == 0)
        fail("stress: --threads must be 1 to %d, the other counts at least 1", THREADS_MAX);
}

int main(int argc, char **argv)
{
    read_options(argc, argv);
    show_malloc_in_force("stress", run.in_force);
    if (run.timeout != 0)
        watchdog((unsigned)run.timeout);

    prepare();
    struct worker me = {0, 0};
    double start = seconds_now(), told = start;
    uint64_t done_each = run.per_generation * run.generations * run.threads;
    for (run.phase = 0; run.phase < run.phases; run.phase++) {
        run_phase(&me);
        double now = seconds_now();
        if (now - told > 5) {
            printf("stress: phase %llu of %llu, %.1f M operations, %.1f s, RSS %zu MiB\n",
                   (unsigned long long)run.phase + 1, (unsigned long long)run.phases,
                   (double)(done_each * (run.phase + 1)) * 1e-6, now - start, rss_mib());
            fflush(stdout);
            told = now;
        }
    }

    uint64_t received = 0, calls = 0;
    for (uint64_t i = 0; i < run.threads; i++) {
        received += run.seats[i].received;
        calls += run.seats[i].calls;
    }
    printf("stress: done: %llu threads at a time, %llu operations, %llu calls of the allocator, "
           "%llu blocks received from other threads, seed %llu, %.1f s, peak RSS %zu MiB\n",
           (unsigned long long)run.threads, (unsigned long long)(done_each * run.phases),
           (unsigned long long)calls, (unsigned long long)received, (unsigned long long)run.seed,
           seconds_now() - start, peak_rss_mib());
    return 0;
}

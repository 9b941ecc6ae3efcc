/* Stress with content checks: threads allocate, resize and free blocks of all sizes, hand them to
 * each other, end and are replaced, while every block must keep what was written into it.
 * README.md says how to run it at length.
 *
 *   main -> run_phase -> thread_main (a generation of a seat; starts the next one when it ends)
 *                          -> seat_work      work.c: slots and exchange
 *                               -> block_*   block.c: one call of the allocator and its checks
 *
 * With one thread the main thread does the work itself, so that the process stays
 * single-threaded. */
#include "work.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define CELLS 2048
#define THREADS_MAX 1024

struct run {
    uint64_t threads, operations, seed, phases, live_mb, generations, timeout, alignment;
    const char *in_force;
    struct exchange exchange;
    struct seat *seats;
    uint64_t per_generation; /* operations of one thread in one generation */
    uint64_t phase;

    pthread_mutex_t lock;
    pthread_cond_t all_done;
    uint64_t working; /* lock; seats whose last generation of the phase has not ended */
};

/* What a thread of the run gets; one for each seat, reused by the generations. */
struct shift {
    struct run *run;
    struct seat *seat;
    uint64_t generation;
};

static void work_generation(struct shift *shift)
{
    struct run *run = shift->run;
    struct seat *seat = shift->seat;
    seat->random = random_start(run->seed, seat->worker.number,
                                run->phase * run->generations + shift->generation);
    seat_work(seat, run->per_generation);
    /* In every other phase the threads free their slots themselves; else main does, after they
     * have ended. */
    if (shift->generation + 1 == run->generations && run->phase % 2 == 0)
        seat_clear(seat, &seat->worker);
}

static void start_thread(struct shift *shift);

static void *thread_main(void *argument)
{
    struct shift *shift = argument;
    struct run *run = shift->run;
    work_generation(shift);
    shift->generation++;
    if (shift->generation < run->generations) {
        start_thread(shift); /* which inherits the live blocks of this one */
        return NULL;
    }
    pthread_mutex_lock(&run->lock);
    if (--run->working == 0)
        pthread_cond_signal(&run->all_done);
    pthread_mutex_unlock(&run->lock);
    return NULL;
}

static void start_thread(struct shift *shift)
{
    pthread_attr_t attributes;
    pthread_t thread;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, 512 * KiB);
    int error = pthread_create(&thread, &attributes, thread_main, shift);
    if (error != 0)
        fail("pthread_create: %s", strerror(error));
    pthread_attr_destroy(&attributes);
}

static void run_phase(struct run *run, struct shift *shifts, const struct worker *me)
{
    run->working = run->threads;
    for (uint64_t i = 0; i < run->threads; i++)
        shifts[i] = (struct shift){run, &run->seats[i], 0};
    if (run->threads == 1) {
        for (; shifts->generation < run->generations; shifts->generation++)
            work_generation(shifts);
    } else {
        for (uint64_t i = 0; i < run->threads; i++)
            start_thread(&shifts[i]);
        pthread_mutex_lock(&run->lock);
        while (run->working != 0)
            pthread_cond_wait(&run->all_done, &run->lock);
        pthread_mutex_unlock(&run->lock);
    }
    for (uint64_t i = 0; i < run->threads; i++)
        seat_clear(&run->seats[i], me);
    exchange_clear(&run->exchange, me);
    size_t left = atomic_load(&run->exchange.large_bytes);
    if (left != 0)
        fail("the test's own books: expected 0 bytes of large blocks, found %zu", left);
}

/* A third of the memory for the small blocks in the slots, of which half are full and hold about
 * 2 KiB; the rest for large blocks. */
static struct shift *prepare(struct run *run)
{
    size_t live = (size_t)run->live_mb * MiB;
    size_t slots = live / 3 / run->threads / KiB;
    slots = slots < 16 ? 16 : slots > 8192 ? 8192 : slots;
    size_t records = slots * run->threads + CELLS;
    struct record *record = pages_from_kernel(records * sizeof *record);
    struct record **slot = pages_from_kernel(slots * run->threads * sizeof(struct record *));

    run->exchange.n = CELLS;
    run->exchange.cells = pages_from_kernel(CELLS * sizeof *run->exchange.cells);
    run->exchange.large_limit = live - live / 3;
    for (size_t i = 0; i < CELLS; i++)
        atomic_init(&run->exchange.cells[i], record++);

    run->seats = pages_from_kernel(run->threads * sizeof *run->seats);
    for (uint64_t i = 0; i < run->threads; i++) {
        struct seat *seat = &run->seats[i];
        seat->worker.number = (unsigned)i + 1;
        seat->exchange = &run->exchange;
        seat->n = slots;
        seat->slots = slot;
        for (size_t k = 0; k < slots; k++)
            *slot++ = record++;
    }
    pthread_mutex_init(&run->lock, NULL);
    pthread_cond_init(&run->all_done, NULL);
    run->per_generation = run->operations / run->threads / run->phases / run->generations;
    if (run->per_generation == 0)
        run->per_generation = 1;
    return pages_from_kernel(run->threads * sizeof(struct shift));
}

static void read_options(struct run *run, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (option_number(argc, argv, &i, "--threads", &run->threads) ||
            option_number(argc, argv, &i, "--operations", &run->operations) ||
            option_number(argc, argv, &i, "--seed", &run->seed) ||
            option_number(argc, argv, &i, "--phases", &run->phases) ||
            option_number(argc, argv, &i, "--generations", &run->generations) ||
            option_number(argc, argv, &i, "--live-mb", &run->live_mb) ||
            option_number(argc, argv, &i, "--timeout", &run->timeout) ||
            option_number(argc, argv, &i, "--alignment", &run->alignment) ||
            option_text(argc, argv, &i, "--in-force", &run->in_force))
            continue;
        fail("stress: unknown option %s; there are --threads --operations --seed --phases "
             "--generations --live-mb --timeout --alignment (numbers; k and M may follow) and "
             "--in-force TEXT",
             argv[i]);
    }
    least_alignment = (size_t)run->alignment;
    if (run->alignment == 0 || run->threads == 0 || run->threads > THREADS_MAX ||
        run->phases == 0 || run->generations == 0 || run->live_mb == 0)
        fail("stress: --threads must be 1 to %d, the other counts at least 1", THREADS_MAX);
}

int main(int argc, char **argv)
{
    static struct run run = {
        .threads = 8,
        .operations = 2000000,
        .seed = 1,
        .phases = 4,
        .live_mb = 256,
        .generations = 4,
        .alignment = 16,
    };
    read_options(&run, argc, argv);
    show_malloc_in_force("stress", run.in_force);
    if (run.timeout != 0)
        watchdog((unsigned)run.timeout);

    struct shift *shifts = prepare(&run);
    struct worker me = {0, 0};
    double start = seconds_now(), told = start;
    uint64_t done_each = run.per_generation * run.generations * run.threads;
    for (run.phase = 0; run.phase < run.phases; run.phase++) {
        run_phase(&run, shifts, &me);
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

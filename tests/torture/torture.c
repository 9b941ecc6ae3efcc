/* Everything at once: threads that live and die, sleep with full stacks, hand blocks every way and
 * fork, while slabs change class, pages and superslabs come and go, and every block must keep what
 * was written into it. After each phase the heap is walked. README.md says how to run it at length.
 *
 *   main -> run_phase -> lives_start -> work     lives of threads on a seat
 *                                         -> act           acts.c: what a thread does for a while
 *                                              -> seat_work, slot_*   tests/stress: blocks, checks
 *                     -> lives_start -> sleep_full         until the phase is over
 *                     -> expect_sound_heap
 *
 * The same seed gives every thread the same sequence of acts and requests. */
#include "acts.h"
#include "base/atomic.h"
#include "lives.h"
#include "statm.h"

#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define CELLS 2048
#define THREADS_MAX 1024
#define LIVES 8 /* of a seat in a phase */
#define ACTS_OF_LIFE 4
#define OPERATIONS_OF_PHASE 1000000
#define RESIDENTS_LEAST 64 /* for a trend to be told from chance */
#define RESIDENTS_MOST 100000

/* What most of a phase's threads do. */
enum theme {
    THEME_ACT, /* one act, drawn anew for each phase */
    THEME_ONE_TO_ALL,
    THEME_ALL_TO_ONE,
    THEME_NONE, /* whatever each draws */
    THEMES
};

static struct {
    uint64_t threads, sleepers, operations, seed, phases, live_mb, forks, timeout, seconds;
    const char *in_force;
    struct exchange exchange;
    struct actor *actors; /* of the sleepers after those of the threads */
    struct lives working, sleeping;
    uint64_t of_act; /* operations */

    uint64_t phase;
    enum theme theme;
    enum act themed;
    uint64_t walks;
    char failure[128]; /* what to say before the end by a signal */

    pthread_mutex_t lock;
    pthread_cond_t woken;
    bool phase_over; /* lock */
} run = {
    .threads = 8,
    .sleepers = 16,
    .operations = 10000000,
    .seed = 1,
    .live_mb = 256,
    .forks = !UNDER_TSAN,
};

/* Bytes after each phase at whose end all was freed, and after a trim, which gives back what is
 * kept for speed: that depends on what work has paid off, and so on who else uses the machine. */
static struct {
    size_t freed[RESIDENTS_MOST], trimmed[RESIDENTS_MOST];
    uint64_t count;
} residents;

/* ---- what threads do ---- */

static enum act choose(struct actor *a)
{
    static const enum act seldom = ACT_FORK;
    uint64_t bits = random_next(&a->seat.random);
    enum act any = (bits >> 16) % 32 == 0 ? seldom : (enum act)((bits >> 8) % seldom);
    bool first = a == &run.actors[0];
    switch (run.theme) {
    case THEME_ACT:
        return bits % 8 < (run.themed == seldom ? 1 : 4) ? run.themed : any;
    case THEME_ONE_TO_ALL:
        return bits % 8 < 6 ? (first ? ACT_GIVE : ACT_TAKE) : any;
    case THEME_ALL_TO_ONE:
        return bits % 8 < 6 ? (first ? ACT_TAKE : ACT_GIVE) : any;
    default:
        return any;
    }
}

static void start_life(struct actor *a, uint64_t generation)
{
    a->seat.random = random_start(run.seed, a->seat.worker.number, run.phase * LIVES + generation);
}

static void work(unsigned seat, uint64_t generation)
{
    struct actor *a = &run.actors[seat];
    start_life(a, generation);
    for (unsigned i = 0; i < ACTS_OF_LIFE; i++)
        act(a, choose(a), run.of_act);
    if (generation + 1 == LIVES && run.phase % 3 == 0)
        seat_clear(&a->seat, &a->seat.worker);
}

/* Half of them die as they wake; the others first use what may have been taken from them. */
static void sleep_full(unsigned seat, uint64_t generation)
{
    struct actor *a = &run.actors[run.threads + seat];
    start_life(a, generation);
    act(a, ACT_CLASS, run.of_act / 4);
    act_fill_stacks(a, run.of_act / 4);
    pthread_mutex_lock(&run.lock);
    while (!run.phase_over)
        pthread_cond_wait(&run.woken, &run.lock);
    pthread_mutex_unlock(&run.lock);
    if (seat % 2 == 0)
        act(a, ACT_MIXTURE, run.of_act / 4);
}

static void set_phase_over(bool over)
{
    pthread_mutex_lock(&run.lock);
    run.phase_over = over;
    pthread_cond_broadcast(&run.woken);
    pthread_mutex_unlock(&run.lock);
}

/* ---- phases ---- */

static void walk(const char *when)
{
    if (expect_sound_heap(when))
        __atomic_fetch_add(&run.walks, 1, __ATOMIC_RELAXED);
}

static uint64_t calls(void)
{
    uint64_t sum = 0;
    for (uint64_t i = 0; i < run.threads + run.sleepers; i++)
        sum += run.actors[i].seat.calls;
    return sum;
}

static void *walk_each_second(void *unused)
{
    (void)unused;
    for (;;) {
        sleep(1);
        walk("while threads work");
    }
    return NULL;
}

static int by_size(const void *a, const void *b)
{
    size_t x = *(const size_t *)a, y = *(const size_t *)b;
    return (x > y) - (x < y);
}

/* Of the phases of the quarter, from 0 on. */
static size_t median_of_quarter(size_t *bytes, unsigned quarter)
{
    uint64_t n = residents.count / 4;
    size_t *first = bytes + quarter * n;
    qsort(first, n, sizeof *first, by_size);
    return first[n / 2];
}

/* What a process holds with everything freed grows no more after the first quarter of its time.
 * Phases differ by so much that the medians of a few say nothing. */
static void expect_no_trend(const char *what, size_t *bytes)
{
    if (residents.count < RESIDENTS_LEAST)
        return;
    size_t before = median_of_quarter(bytes, 1), after = median_of_quarter(bytes, 3);
    size_t most = before + before / 8 + 8 * MiB;
    printf("torture: resident %s, medians: %zu KiB in the second quarter of the run, %zu KiB in "
           "the last\n",
           what, before / KiB, after / KiB);
    if (after > most)
        fail("torture: memory resident %s grows: expected at most %zu KiB, found %zu KiB", what,
             most / KiB, after / KiB);
}

/* A child trims its copy of the heap, so that the next phase begins as it would without. */
static size_t resident_if_trimmed(void)
{
    int ends[2];
    size_t bytes = 0;
    if (!run.forks)
        return 0;
    if (pipe(ends) != 0)
        fail("torture: pipe failed: %s", strerror(errno));
    pid_t child = fork();
    if (child == 0) {
        malloc_trim(0);
        bytes = statm_read().resident;
        _exit(write(ends[1], &bytes, sizeof bytes) != sizeof bytes);
    }
    close(ends[1]);
    if (child < 0 || read(ends[0], &bytes, sizeof bytes) != sizeof bytes)
        fail("torture: no child told what is resident after a trim");
    close(ends[0]);
    waitpid(child, NULL, 0);
    return bytes;
}

static void note_residents(void)
{
    if (residents.count == RESIDENTS_MOST)
        return;
    residents.freed[residents.count] = statm_read().resident;
    residents.trimmed[residents.count++] = resident_if_trimmed();
}

static void clear(const struct worker *me)
{
    for (uint64_t i = 0; i < run.threads + run.sleepers; i++)
        seat_clear(&run.actors[i].seat, me);
    exchange_clear(&run.exchange, me);
    size_t left = atomic_load(&run.exchange.large_bytes);
    if (left != 0)
        fail("the test's own books: expected 0 bytes of large blocks, found %zu", left);
}

static void run_phase(const struct worker *me)
{
    struct randomness random = random_start(run.seed, THREADS_MAX + 1, run.phase);
    run.theme = (enum theme)(random_next(&random) % THEMES);
    run.themed = (enum act)(random_next(&random) % ACTS);
    snprintf(run.failure, sizeof run.failure, "torture: failed with --seed %llu in phase %llu\n",
             (unsigned long long)run.seed, (unsigned long long)run.phase);
    set_phase_over(false);
    lives_start(&run.sleeping);
    lives_start(&run.working);
    while (!lives_ended(&run.working, 60))
        ;
    walk("while threads sleep");
    set_phase_over(true);
    while (!lives_ended(&run.sleeping, 60))
        ;
    walk("after the threads of a phase");
    /* Every third phase begins with the blocks of the one before. */
    if (run.phase % 3 == 2 && run.phase + 1 != run.phases)
        return;
    clear(me);
    walk("after all was freed");
    note_residents();
}

static void tell_progress(double start)
{
    uint64_t last = residents.count == 0 ? 0 : residents.count - 1;
    printf("torture: phase %llu, %.1f M calls, %.1f s, RSS %zu MiB, with everything freed %zu MiB, "
           "trimmed %zu MiB\n",
           (unsigned long long)run.phase + 1, (double)calls() * 1e-6, seconds_now() - start,
           rss_mib(), residents.freed[last] / MiB, residents.trimmed[last] / MiB);
    fflush(stdout);
}

static void tell_end(double start)
{
    struct child_times children = {0};
    uint64_t acts[ACTS] = {0}, received = 0;
    for (uint64_t i = 0; run.actors != NULL && i < run.threads + run.sleepers; i++) {
        const struct actor *a = &run.actors[i];
        children.children += a->times.children;
        received += a->seat.received;
        for (unsigned k = 0; k < ACTS; k++)
            acts[k] += a->acts[k];
    }
    printf("torture: acts:");
    for (unsigned k = 0; k < ACTS; k++)
        printf(" %s %llu", act_names[k], (unsigned long long)acts[k]);
    printf("\ntorture: done: %llu threads and %llu sleepers at a time, %llu operations, %llu calls "
           "of the allocator, %llu blocks received from other threads, %llu children, %llu walks "
           "of the heap, seed %llu, %.1f s, peak RSS %zu MiB, at the end %zu MiB\n",
           (unsigned long long)run.threads, (unsigned long long)run.sleepers,
           (unsigned long long)run.operations, (unsigned long long)calls(),
           (unsigned long long)received, (unsigned long long)children.children,
           (unsigned long long)run.walks, (unsigned long long)run.seed, seconds_now() - start,
           peak_rss_mib(), rss_mib());
}

/* ---- start ---- */

static void on_failure(int number)
{
    if (write(STDERR_FILENO, run.failure, strlen(run.failure)) < 0)
        _exit(99);
    signal(number, SIG_DFL);
    raise(number);
}

/* A third of the memory for small blocks, as in the stress; the rest for large ones. */
static void prepare(void)
{
    size_t live = (size_t)run.live_mb * MiB;
    uint64_t actors = run.threads + run.sleepers;
    size_t bytes = live / 3 / actors;
    size_t slots = bytes / KiB;
    slots = slots < 64 ? 64 : slots > 8192 ? 8192 : slots;
    exchange_make(&run.exchange, CELLS, live - live / 3);
    struct actor *all = pages_from_kernel(actors * sizeof *all);
    run.actors = all;
    for (unsigned i = 0; i < actors; i++) {
        struct actor *a = &all[i];
        seat_make(&a->seat, i + 1, slots, &run.exchange);
        a->slots = slots;
        a->bytes = bytes;
        a->forks = run.forks != 0;
    }
    run.working = (struct lives){
        .seats = (unsigned)run.threads,
        .generations = LIVES,
        .live = work,
        .each = pages_from_kernel(run.threads * sizeof(struct life)),
    };
    run.sleeping = (struct lives){
        .seats = (unsigned)run.sleepers,
        .generations = 1,
        .live = sleep_full,
        .each = pages_from_kernel((run.sleepers + 1) * sizeof(struct life)),
    };
    if (run.phases == 0)
        run.phases = run.operations / OPERATIONS_OF_PHASE + 3;
    uint64_t of_phase = run.operations / run.phases;
    if (run.seconds != 0) { /* phases until then */
        run.phases = UINT64_MAX;
        of_phase = OPERATIONS_OF_PHASE;
    }
    run.of_act = of_phase / run.threads / LIVES / ACTS_OF_LIFE + 1;
    pthread_mutex_init(&run.lock, NULL);
    pthread_cond_init(&run.woken, NULL);
    for (int number = SIGILL; number <= SIGSEGV; number++)
        if (number == SIGABRT || number == SIGBUS || number == SIGSEGV || number == SIGILL)
            signal(number, on_failure);
}

static void read_options(int argc, char **argv)
{
    static const struct known_option known[] = {
        {"--threads", &run.threads, NULL},
        {"--sleepers", &run.sleepers, NULL},
        {"--operations", &run.operations, NULL},
        {"--seed", &run.seed, NULL},
        {"--phases", &run.phases, NULL},
        {"--live-mb", &run.live_mb, NULL},
        {"--forks", &run.forks, NULL},
        {"--timeout", &run.timeout, NULL},
        {"--seconds", &run.seconds, NULL},
        {"--in-force", NULL, &run.in_force},
        {NULL, NULL, NULL},
    };
    if (argc > 1 && strcmp(argv[1], CHILD_NOTHING) == 0)
        exit(0);
    options_read("torture", argc, argv, 1, known);
    if (run.threads == 0 || run.threads + run.sleepers > THREADS_MAX || run.live_mb == 0)
        fail("torture: --threads must be at least 1, with --sleepers at most %d", THREADS_MAX);
}

int main(int argc, char **argv)
{
    read_options(argc, argv);
    show_malloc_in_force("torture", run.in_force);
    if (run.timeout != 0)
        watchdog((unsigned)run.timeout);
    prepare();
    struct worker me = {0, 0};
    double start = seconds_now(), told = start;
    pthread_t walker;
    if (run.seconds != 0 && pthread_create(&walker, NULL, walk_each_second, NULL) != 0)
        fail("torture: pthread_create failed");
    for (run.phase = 0; run.phase < run.phases; run.phase++) {
        if (run.seconds != 0 && seconds_now() - start >= (double)run.seconds)
            run.operations = (run.phases = run.phase + 1) * OPERATIONS_OF_PHASE; /* the last */
        run_phase(&me);
        if (seconds_now() - told > 5) {
            told = seconds_now();
            tell_progress(start);
        }
    }
    tell_end(start);
    expect_no_trend("with everything freed", residents.freed);
    expect_no_trend("after a trim", residents.trimmed);
    return 0;
}

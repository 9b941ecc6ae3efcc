/* Fork under load: threads allocate and exchange blocks while the main thread forks again and
 * again. Each child checks and frees blocks that it and other threads made before the fork,
 * allocates, and ends; some fork once more, some start a thread, some leave by exit. Handlers of
 * pthread_atfork allocate too (trap 41), and some forks are posix_spawn, which runs none (trap 42).
 *
 * What the child touches of the time before lies still during the fork: blocks that the main
 * thread has taken out of the exchange. The exchange itself is not for the child: fork's copy of
 * memory is no single instant for what other threads write meanwhile. */
#include "names.h"
#include "work.h"

#include <errno.h>
#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define CELLS 512
#define SLOTS 256
#define CHILD_SECONDS 60

static struct {
    uint64_t threads, forks, seed, timeout, alignment;
    const char *in_force;
    struct exchange exchange;
    struct seat *seats; /* [0] is the main thread's */
    _Atomic int stop;
} run = {.threads = 8, .forks = 2000, .seed = 1, .timeout = 300, .alignment = 16};

/* Only the main thread forks: no lock. */
static void *held_over_fork;

static void before_fork(void) { held_over_fork = do_malloc(777); }

static void after_fork(void)
{
    void *other = do_malloc(12345);
    do_free(held_over_fork);
    do_free(other);
}

static void prepare_exchange(struct exchange *e, size_t large_limit)
{
    struct record *record = pages_from_kernel(CELLS * sizeof *record);
    e->cells = pages_from_kernel(CELLS * sizeof *e->cells);
    e->n = CELLS;
    e->large_limit = large_limit;
    for (size_t i = 0; i < CELLS; i++)
        atomic_init(&e->cells[i], record++);
}

static void prepare_seat(struct seat *seat, unsigned number, struct exchange *e)
{
    struct record *record = pages_from_kernel(SLOTS * sizeof *record);
    seat->slots = pages_from_kernel(SLOTS * sizeof *seat->slots);
    seat->n = SLOTS;
    for (size_t i = 0; i < SLOTS; i++)
        seat->slots[i] = record++;
    seat->worker.number = number;
    seat->exchange = e;
    seat->random = random_start(run.seed, number, 0);
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

static void *thread_in_child(void *argument)
{
    seat_work(argument, 300);
    return NULL;
}

/* The main seat goes on in the child with an exchange that no thread but its own has seen. */
static void child(uint64_t number, bool may_fork)
{
    static struct exchange private;
    struct seat *seat = &run.seats[0];
    watchdog(CHILD_SECONDS);
    if (private.cells == NULL)
        prepare_exchange(&private, 16 * MiB);
    for (size_t i = 0; i < seat->n; i++) {
        if (seat->slots[i]->block != NULL)
            block_check(seat->slots[i], &seat->worker);
        atomic_fetch_add(&private.large_bytes, seat->slots[i]->weight);
    }
    seat->exchange = &private;
    seat->random = random_start(run.seed, seat->worker.number, number);
    seat_work(seat, 400);
    if (number % 16 == 5) {
        pthread_t thread;
        int error = pthread_create(&thread, NULL, thread_in_child, seat);
        if (error != 0)
            fail("child %llu: pthread_create: %s", (unsigned long long)number, strerror(error));
        pthread_join(thread, NULL);
    }
    if (number % 16 == 9 && may_fork) {
        int status;
        pid_t grandchild = fork();
        if (grandchild == 0) {
            child(number, false);
            _exit(0);
        }
        if (grandchild < 0 || waitpid(grandchild, &status, 0) != grandchild || status != 0)
            fail("child %llu: its own child did not end well", (unsigned long long)number);
    }
    seat_clear(seat, &seat->worker);
    exchange_clear(&private, &seat->worker);
    seat_work(seat, 100);
}

static void expect_good_end(pid_t pid, uint64_t number)
{
    int status;
    while (waitpid(pid, &status, 0) != pid)
        if (errno != EINTR)
            fail("waitpid: %s", strerror(errno));
    if (status == 0)
        return;
    if (WIFSIGNALED(status))
        fail("fork %llu: expected the child to end well, found that it died by signal %d (%s)",
             (unsigned long long)number, WTERMSIG(status), strsignal(WTERMSIG(status)));
    fail("fork %llu: expected the child to end with 0, found %d", (unsigned long long)number,
         WEXITSTATUS(status));
}

static void fork_once(uint64_t number)
{
    pid_t pid;
    if (number % 64 == 33) {
        char *const arguments[] = {"stress_fork", "--nothing", NULL};
        extern char **environ;
        int error = posix_spawn(&pid, "/proc/self/exe", NULL, NULL, arguments, environ);
        if (error != 0)
            fail("posix_spawn: %s", strerror(error));
    } else {
        pid = fork();
        if (pid < 0)
            fail("fork %llu: %s", (unsigned long long)number, strerror(errno));
        if (pid == 0) {
            child(number, true);
            if (number % 32 == 17)
                exit(0);
            _exit(0);
        }
    }
    expect_good_end(pid, number);
}

static void read_options(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--nothing") == 0)
            exit(0);
        if (option_number(argc, argv, &i, "--threads", &run.threads) ||
            option_number(argc, argv, &i, "--forks", &run.forks) ||
            option_number(argc, argv, &i, "--seed", &run.seed) ||
            option_number(argc, argv, &i, "--timeout", &run.timeout) ||
            option_number(argc, argv, &i, "--alignment", &run.alignment) ||
            option_text(argc, argv, &i, "--in-force", &run.in_force))
            continue;
        fail("stress_fork: unknown option %s; there are --threads --forks --seed --timeout "
             "--alignment (numbers) and --in-force TEXT",
             argv[i]);
    }
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

    double start = seconds_now(), told = start;
    prepare_exchange(&run.exchange, 8 * MiB);
    run.seats = pages_from_kernel((run.threads + 1) * sizeof *run.seats);
    for (unsigned i = 0; i <= run.threads; i++)
        prepare_seat(&run.seats[i], i, &run.exchange);
    for (unsigned i = 0; i < run.threads; i++)
        if (pthread_create(&threads[i], NULL, thread_main, &run.seats[i + 1]) != 0)
            fail("pthread_create failed");

    for (uint64_t number = 1; number <= run.forks; number++) {
        seat_work(&run.seats[0], 200);
        fork_once(number);
        if (seconds_now() - told > 5) {
            told = seconds_now();
            printf("stress_fork: %llu of %llu forks, %.1f s\n", (unsigned long long)number,
                   (unsigned long long)run.forks, told - start);
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
           "parent, %.1f s, peak RSS %zu MiB\n",
           (unsigned long long)run.forks, (unsigned long long)run.threads,
           (unsigned long long)calls, seconds_now() - start, peak_rss_mib());
    return 0;
}

/* What fork costs a program with a heap: threads allocate, free a fifth at random and sleep; then
 * the main thread forks again and again.
 *
 *   fork_cost exec    fork, and /bin/true in the child
 *   fork_cost spawn   the same by posix_spawn
 *   fork_cost exit    fork, and the child's end
 *
 * Prints `name=value` lines that fork_cost.py reads. The program that the child becomes has nothing
 * preloaded. */
#include "support.h"

#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define THREADS_MAX 64
#define LARGEST 2048

static uint64_t threads = 1, forks = 1000, bytes = 64 * MiB;
static void *(*volatile do_malloc)(size_t) = malloc;
static void (*volatile do_free)(void *) = free;
static _Atomic size_t ready;

static void use_heap(size_t number)
{
    struct randomness random = random_start(1, number, 0);
    size_t most = (size_t)(bytes / threads);
    void **blocks = pages_from_kernel(most / (LARGEST / 4) * sizeof *blocks);
    size_t n = 0;
    for (size_t sum = 0; sum < most && n < most / (LARGEST / 4);) {
        size_t size = 16 + random_next(&random) % LARGEST;
        blocks[n] = do_malloc(size);
        if (blocks[n] == NULL)
            fail("malloc(%zu) gave NULL", size);
        memset(blocks[n++], 1, size);
        sum += size;
    }
    for (size_t i = 0; i < n; i++)
        if (random_next(&random) % 5 == 0)
            do_free(blocks[i]);
}

static void *thread_main(void *number)
{
    use_heap((size_t)number);
    ready++;
    for (;;)
        pause();
    return NULL;
}

static char *const arguments[] = {"true", NULL};
static char *const environment[] = {"LC_ALL=C", NULL};

static pid_t run_child(char how)
{
    pid_t pid = 0;
    if (how == 's')
        return posix_spawn(&pid, "/bin/true", NULL, NULL, arguments, environment) == 0 ? pid : -1;
    pid = fork();
    if (pid != 0)
        return pid;
    if (how == 'x')
        execve("/bin/true", arguments, environment);
    _exit(how == 'x');
}

static long faults(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_minflt;
}

static int by_value(const void *a, const void *b)
{
    long x = *(const long *)a, y = *(const long *)b;
    return (x > y) - (x < y);
}

/* Not the mean: on a busy machine a few of the forks find pages that the kernel has taken back. */
static long median(long *values, size_t n)
{
    qsort(values, n, sizeof *values, by_value);
    return values[n / 2];
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    char how = strcmp(what, "exec") == 0 ? 'x' : strcmp(what, "spawn") == 0 ? 's' : 'e';
    static const struct known_option known[] = {
        {"--threads", &threads, NULL},
        {"--forks", &forks, NULL},
        {"--bytes", &bytes, NULL},
        {NULL, NULL, NULL},
    };
    options_read("fork_cost", argc, argv, 2, known);
    if (how == 'e' && strcmp(what, "exit") != 0)
        fail("fork_cost: first say what: exec, spawn or exit");
    if (threads == 0 || threads > THREADS_MAX)
        fail("fork_cost: --threads must be 1 to %d", THREADS_MAX);
    if (forks == 0)
        fail("fork_cost: --forks must be at least 1");
    watchdog(500);
    /* Whether the kernel found a huge page free is no difference between allocators. */
    if (prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0) != 0)
        fail("PR_SET_THP_DISABLE is refused");

    for (uint64_t i = 1; i < threads; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, thread_main, (void *)(uintptr_t)i) != 0)
            fail("pthread_create failed");
        /* One after the other, and nobody waits in the kernel: every run makes the same calls. */
        while (ready < i)
            ;
    }
    use_heap(0);

    long *of_parent = pages_from_kernel(forks * sizeof(long));
    long *of_child = pages_from_kernel(forks * sizeof(long));
    memset(of_parent, 0, forks * sizeof(long));
    memset(of_child, 0, forks * sizeof(long));
    double start = seconds_now();
    long before = faults(), after;
    for (uint64_t i = 0; i < forks; i++, before = after) {
        struct rusage child;
        int status = -1;
        pid_t pid = run_child(how);
        if (pid < 0 || wait4(pid, &status, 0, &child) != pid || status != 0)
            fail("fork %llu: expected a good end, found status %d", (unsigned long long)i, status);
        after = faults();
        of_parent[i] = after - before;
        of_child[i] = child.ru_minflt;
    }
    double time = seconds_now() - start;
    printf("parent_faults=%ld\nchild_faults=%ld\nmicroseconds=%.1f\n", median(of_parent, forks),
           median(of_child, forks), time * 1e6 / (double)forks);
    fflush(stdout);
    _exit(0);
}

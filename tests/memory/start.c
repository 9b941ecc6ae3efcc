/* What the start of a program costs with a library preloaded, beside what it costs without:
 *
 *   start memory LIBRARY PROGRAM [--rounds N]   its memory as it ends, the most of several runs
 *   start time LIBRARY PROGRAM [--rounds N]     microseconds of the processor from vfork to its
 *                                               end, in turn without and with
 *
 * The program gets no arguments and its output is thrown away. Prints `name=value` lines that
 * start.py reads; ends with 77 where no process may trace another. */
#include "resident.h"
#include "support.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define SKIPPED 77
#define ROUNDS_MAX 100000
#define MEMORY_RUNS 20

static char *plain[] = {"LC_ALL=C", NULL};
static char *preloaded[] = {"LC_ALL=C", NULL, NULL};

static const char *library;
static int nowhere; /* what the program's output goes to */

/* In the child, which shares memory with us. */
static void run_program(char *program, char **environment)
{
    char *arguments[] = {program, NULL};
    if (dup2(nowhere, STDOUT_FILENO) == STDOUT_FILENO)
        execve(program, arguments, environment);
    _exit(127);
}

/* Without the library the figures would be of nothing. */
static void expect_library(pid_t pid, bool wanted)
{
    static char text[64 * KiB];
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/maps", (int)pid);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    size_t length = 0;
    for (ssize_t got; file >= 0 && length < sizeof text - 1; length += (size_t)got)
        if ((got = read(file, text + length, sizeof text - 1 - length)) <= 0)
            break;
    close(file);
    text[length] = 0;
    if ((strstr(text, library) != NULL) != wanted)
        fail("expected %s %s in the program's memory", wanted ? "to find" : "not to find", library);
}

static struct resident memory_at_end(char *program, char **environment)
{
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0)
            _exit(SKIPPED);
        raise(SIGSTOP);
        run_program(program, environment);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid)
        fail("no child to trace: %s", strerror(errno));
    if (!WIFSTOPPED(status) ||
        ptrace(PTRACE_SETOPTIONS, pid, NULL, PTRACE_O_TRACEEXIT | PTRACE_O_EXITKILL) != 0) {
        fprintf(stderr, "start: no process may trace another here\n");
        exit(SKIPPED);
    }
    /* Its exec stops it by SIGTRAP, its end by an event, with all its memory still there. */
    struct resident found = {0, 0, 0};
    for (bool seen = false;;) {
        ptrace(PTRACE_CONT, pid, NULL, NULL);
        if (waitpid(pid, &status, 0) != pid)
            fail("waitpid: %s", strerror(errno));
        if (WIFSTOPPED(status) && status >> 8 == (SIGTRAP | PTRACE_EVENT_EXIT << 8)) {
            found = resident_of(pid);
            expect_library(pid, environment == preloaded);
            seen = true;
        } else if (!WIFSTOPPED(status)) {
            if (!seen || !WIFEXITED(status) || WEXITSTATUS(status) != 0)
                fail("%s: expected an end with 0, found status %#x", program, (unsigned)status);
            return found;
        }
    }
}

static void keep_largest(struct resident *largest, struct resident found)
{
    if (found.anonymous > largest->anonymous)
        largest->anonymous = found.anonymous;
    if (found.private_dirty > largest->private_dirty)
        largest->private_dirty = found.private_dirty;
    if (found.all > largest->all)
        largest->all = found.all;
}

/* Of several runs: whether a page touched becomes a huge one depends on the random address. */
static void memory(char *program)
{
    struct resident without = {0}, with = {0};
    /* Pages of a library just built count as written to until they are on disk. */
    int file = open(library, O_RDONLY | O_CLOEXEC);
    fsync(file);
    close(file);
    for (int i = 0; i < MEMORY_RUNS; i++) {
        keep_largest(&without, memory_at_end(program, plain));
        keep_largest(&with, memory_at_end(program, preloaded));
    }
    printf("anonymous_without=%zu\nanonymous_with=%zu\n", without.anonymous, with.anonymous);
    printf("private_dirty_without=%zu\nprivate_dirty_with=%zu\n", without.private_dirty,
           with.private_dirty);
    printf("resident_without=%zu\nresident_with=%zu\n", without.all, with.all);
}

/* Of the processor, since the clock on the wall depends on what else the machine does. That time
 * does, too, by what others leave in the caches: so the runs that cost least count. */
static double run_once(char *program, char **environment)
{
    int status;
    struct rusage used;
    pid_t pid = vfork();
    if (pid == 0)
        run_program(program, environment);
    if (pid < 0 || wait4(pid, &status, 0, &used) != pid || status != 0)
        fail("%s did not end well", program);
    return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1e6 +
           (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

static int ascending(const void *a, const void *b)
{
    double difference = *(const double *)a - *(const double *)b;
    return (difference > 0) - (difference < 0);
}

static long faults_of_children(void)
{
    struct rusage usage;
    getrusage(RUSAGE_CHILDREN, &usage);
    return usage.ru_minflt;
}

static void take_time(char *program, size_t rounds)
{
    double *without = pages_from_kernel(rounds * sizeof *without);
    double *with = pages_from_kernel(rounds * sizeof *with);
    for (size_t i = 0; i < rounds + 20; i++) {
        size_t at = i % rounds; /* the last ones write over the first, which warm up */
        if (i % 2 == 0)
            without[at] = run_once(program, plain);
        with[at] = run_once(program, preloaded);
        if (i % 2 != 0)
            without[at] = run_once(program, plain);
    }
    long before = faults_of_children();
    run_once(program, plain);
    long between = faults_of_children();
    run_once(program, preloaded);
    printf("faults_without=%ld\nfaults_with=%ld\n", between - before,
           faults_of_children() - between);
    qsort(without, rounds, sizeof *without, ascending);
    qsort(with, rounds, sizeof *with, ascending);
    double least = without[rounds / 10];
    printf("microseconds_without=%.1f\nmicroseconds_with=%.1f\nmicroseconds_more=%.1f\n", least,
           with[rounds / 10], with[rounds / 10] - least);
}

int main(int argc, char **argv)
{
    static char preload[4096];
    static uint64_t rounds = 1000;
    static const struct known_option known[] = {{"--rounds", &rounds, NULL}, {NULL, NULL, NULL}};
    if (argc < 4)
        fail("start: expected memory|time LIBRARY PROGRAM [--rounds N]");
    options_read("start", argc, argv, 4, known);
    if (rounds == 0 || rounds > ROUNDS_MAX)
        fail("start: --rounds must be 1 to %d", ROUNDS_MAX);
    watchdog(500);
    library = argv[2];
    nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    snprintf(preload, sizeof preload, "LD_PRELOAD=%s", argv[2]);
    preloaded[1] = preload;
    if (strcmp(argv[1], "memory") == 0)
        memory(argv[3]);
    else
        take_time(argv[3], (size_t)rounds);
    return 0;
}

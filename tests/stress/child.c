#include "child.h"

#include <errno.h>
#include <pthread.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHILD_SECONDS 300
#define CELLS 512
/* Copies of a parent's pages cost more than the allocator; what is left is the parent's, too. */
#define SLOTS_MOST 256

/* Set by the build: no child of a fork among threads starts threads there, and the kernel starts no
 * program of another processor. */
#ifndef UNDER_EMULATOR
#define UNDER_EMULATOR 0
#endif

extern char **environ;

static const char *const program = UNDER_EMULATOR ? "/bin/true" : "/proc/self/exe";
static char *const nothing[] = {"child", CHILD_NOTHING, NULL};

static void *thread_in_child(void *seat)
{
    seat_work(seat, 300);
    return NULL;
}

static void with_thread(struct seat *seat, uint64_t number)
{
    pthread_t thread;
    int error = pthread_create(&thread, NULL, thread_in_child, seat);
    if (error != 0)
        fail("child %llu: pthread_create: %s", (unsigned long long)number, strerror(error));
    pthread_join(thread, NULL);
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

/* The seat goes on with an exchange that no thread but its own has seen. */
static void live(struct seat *seat, uint64_t seed, uint64_t number, bool may_fork)
{
    static struct exchange private;
    watchdog(CHILD_SECONDS);
    if (private.cells == NULL)
        exchange_make(&private, CELLS, 16 * MiB);
    if (seat->n > SLOTS_MOST)
        seat->n = SLOTS_MOST;
    for (size_t i = 0; i < seat->n; i++) {
        if (seat->slots[i]->block != NULL)
            block_check(seat->slots[i], &seat->worker);
        if (seat->exchange != &private)
            atomic_fetch_add(&private.large_bytes, seat->slots[i]->weight);
    }
    seat->exchange = &private;
    seat->random = random_start(seed, seat->worker.number, number);
    seat_work(seat, 400);
    if (number % 16 == 5 && !UNDER_EMULATOR)
        with_thread(seat, number);
    if (number % 16 == 9 && may_fork) {
        pid_t grandchild = fork();
        if (grandchild == 0) {
            live(seat, seed, number, false);
            _exit(0);
        }
        if (grandchild < 0)
            fail("child %llu: fork: %s", (unsigned long long)number, strerror(errno));
        expect_good_end(grandchild, number);
    }
    if (number % 8 == 3)
        expect_sound_heap("in a child");
    seat_clear(seat, &seat->worker);
    exchange_clear(&private, &seat->worker);
    seat_work(seat, 100);
}

static pid_t spawn(uint64_t number)
{
    pid_t pid;
    int error = posix_spawn(&pid, program, NULL, NULL, nothing, environ);
    if (error != 0)
        fail("spawn %llu: %s", (unsigned long long)number, strerror(error));
    return pid;
}

static _Noreturn void be_child(struct seat *seat, uint64_t seed, uint64_t number)
{
    /* Some only exec. */
    if (number % 32 != 31)
        live(seat, seed, number, true);
    if (number % 16 == 15) {
        execv(program, nothing);
        fail("exec in child %llu: %s", (unsigned long long)number, strerror(errno));
    }
    if (number % 32 == 17)
        exit(0);
    _exit(0);
}

void child_run(struct seat *seat, uint64_t seed, uint64_t number, struct child_times *times)
{
    double start = seconds_now();
    pid_t pid = number % 64 == 33 ? spawn(number) : fork();
    if (pid == 0)
        be_child(seat, seed, number);
    if (pid < 0)
        fail("fork %llu: %s", (unsigned long long)number, strerror(errno));
    double forking = seconds_now() - start;
    expect_good_end(pid, number);
    times->children++;
    times->forking += forking;
    times->living += seconds_now() - start;
    if (forking > times->longest)
        times->longest = forking;
}

/* The allocator's own thread: when it starts and ends, what it may never hold up, and what it costs
 * (traps 36, 39, 43, 59). Each case is a child of its own. */
#include "trap.h"

#include <dirent.h>
#include <malloc.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <hakmem/hakmem.h>

enum { SECONDS = 10, UNTESTED = 77 };

/* The number of the thread, 0 if there is none; `tasks` is how many the process has. */
static pid_t scavenger(unsigned *tasks)
{
    pid_t found = 0;
    DIR *directory = opendir("/proc/self/task");
    *tasks = 0;
    for (const struct dirent *entry; directory != NULL && (entry = readdir(directory)) != NULL;) {
        char path[300], name[32] = "";
        if (entry->d_name[0] == '.')
            continue;
        ++*tasks;
        snprintf(path, sizeof path, "/proc/self/task/%s/comm", entry->d_name);
        FILE *file = fopen(path, "r");
        if (file == NULL)
            continue;
        if (fgets(name, sizeof name, file) != NULL && strcmp(name, "hakmem\n") == 0)
            found = (pid_t)atoi(entry->d_name);
        fclose(file);
    }
    if (directory != NULL)
        closedir(directory);
    return found;
}

/* Enough for every stack to overflow. */
static void take_and_free(size_t size)
{
    enum { N = 20000 };
    static __thread void *blocks[N];
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < N; i++)
            blocks[i] = NEED("malloc", do_malloc(size));
        for (int i = 0; i < N; i++)
            do_free(blocks[i]);
    }
}

/* The thread names itself, so it may take a moment to be seen. */
static pid_t scavenger_soon(void)
{
    unsigned tasks;
    pid_t found = 0;
    for (int i = 0; i < 200 && (found = scavenger(&tasks)) == 0; i++) {
        take_and_free(64);
        usleep(10000);
    }
    CHECK(found != 0, "a second thread uses the heap: expected a thread named hakmem, found none");
    return found;
}

/* A process that only the scavenger keeps takes no signal, so no watchdog of its own helps. */
static void expect_success(const char *what, void (*f)(void))
{
    int status = -1;
    if (!check_all_passed())
        return; /* the child couldn't tell its failures from those before */
    pid_t child = fork(), ended = 0;
    if (child == 0) {
        f();
        _exit(!check_all_passed());
    }
    for (int i = 0; i < SECONDS * 100 && (ended = waitpid(child, &status, WNOHANG)) == 0; i++)
        usleep(10000);
    if (ended == 0) {
        kill(child, SIGKILL);
        waitpid(child, &status, 0);
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) == UNTESTED)
        return;
    CHECK(ended == child && status == 0, "%s: expected its end with 0 within %d s, found %s %#x",
          what, SECONDS, ended == child ? "status" : "none, then", (unsigned)status);
}

static void *wait_for_ever(void *unused)
{
    for (do_free(do_malloc(100)); unused == NULL;)
        pause();
    return unused;
}

/* ---- its end ---- */

static void *work_and_look(void *unused)
{
    scavenger_soon();
    if (!check_all_passed())
        _exit(1);
    return unused;
}

static void all_threads_end(void)
{
    for (int i = 0; i < 2; i++)
        started(work_and_look, NULL);
    pthread_exit(NULL);
}

static void ends_with_the_last_thread(void)
{
    expect_success("a process whose threads all ended", all_threads_end);
}

/* ---- its start ---- */

static int fill;
static size_t block_of_thread;
static void *filled[64];
static pthread_barrier_t have_filled;

static void *fill_and_wait(void *unused)
{
    for (int i = 0; i < fill; i++)
        filled[i] = NEED("malloc", do_malloc(block_of_thread));
    pthread_barrier_wait(&have_filled);
    return wait_for_ever(unused);
}

static void *nothing(void *unused) { return unused; }

/* Libc frees what a thread on a stack of the program's had with its list of stacks locked, which
 * pthread_create takes. */
static void join_with_a_full_stack(void)
{
    enum { THREADS = 3, STACK = 256 * KiB };
    pthread_t threads[THREADS];
    pthread_attr_t attributes;
    pthread_barrier_init(&have_filled, NULL, 2);
    started(fill_and_wait, NULL);
    pthread_attr_init(&attributes);
    for (int i = 0; i < THREADS; i++) {
        pthread_attr_setstack(&attributes, pages_from_kernel(STACK), STACK);
        CHECK_ERROR("pthread_create", pthread_create(&threads[i], &attributes, nothing, NULL), 0);
    }
    pthread_barrier_wait(&have_filled);
    for (int i = 0; i < fill; i++)
        do_free(filled[i]);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

/* The free that finds the stack of its class full may be any, and each C library has another size:
 * all are tried. Three fillings in a row make one of those three frees the one. */
static void never_started_by_free(void)
{
    for (block_of_thread = 256; block_of_thread <= 336; block_of_thread += 16)
        for (fill = 0; fill < 60; fill += 2)
            expect_success("pthread_join that frees", join_with_a_full_stack);
}

/* ---- how it runs ---- */

static void start_at_real_time(void)
{
    struct sched_param priority = {.sched_priority = 10};
    if (sched_setscheduler(0, SCHED_FIFO, &priority) != 0) {
        printf("scavenger: SCHED_FIFO: %s: not tested\n", error_name(errno));
        fflush(stdout);
        _exit(UNTESTED);
    }
    started(wait_for_ever, NULL);
    pid_t found = scavenger_soon();
    int policy = sched_getscheduler(found);
    CHECK(policy == SCHED_OTHER, "its policy, started at real time: expected %d, found %d",
          SCHED_OTHER, policy);
}

static void has_no_priority_of_another(void)
{
    expect_success("a thread at real time", start_at_real_time);
}

static double processor_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* No purge succeeds, so what is to go back is never less. */
static void rest_with_all_locked(void)
{
    enum { N = 60 };
    void *goes[N], *stays[N];
    started(wait_for_ever, NULL);
    if (mlockall(MCL_CURRENT | MCL_FUTURE) != 0) {
        printf("scavenger: mlockall: %s: not tested\n", error_name(errno));
        fflush(stdout);
        _exit(UNTESTED);
    }
    for (int i = 0; i < N; i++) {
        goes[i] = NEED("malloc", do_malloc(MiB));
        stays[i] = NEED("malloc", do_malloc(300000));
    }
    for (int i = 0; i < N; i++)
        do_free(goes[i]);
    scavenger_soon();
    double before = processor_seconds();
    sleep(2);
    double used = processor_seconds() - before;
    CHECK(used < 0.1, "processor time in 2 s of rest: expected less than 0.1 s, found %.3f", used);
    for (int i = 0; i < N; i++)
        do_free(stays[i]);
}

static void rests_where_purges_fail(void)
{
    expect_success("a process with all memory locked", rest_with_all_locked);
}

/* ---- children ---- */

static void expect_one_task(const char *whose)
{
    unsigned tasks;
    take_and_free(64);
    scavenger(&tasks);
    CHECK(tasks == 1, "%s: expected 1 task, found %u", whose, tasks);
}

static void child_alone(void) { expect_one_task("a child of one thread"); }

static void thread_came_and_went(void)
{
    in_thread(nothing, NULL);
    in_child(child_alone);
    expect_one_task("a process whose other thread has ended");
}

static void none_in_a_process_of_one_thread(void)
{
    expect_success("a process whose other thread has ended", thread_came_and_went);
}

static pthread_barrier_t have_freed;

static void *free_and_wait(void *unused)
{
    take_and_free(256);
    pthread_barrier_wait(&have_freed);
    return wait_for_ever(unused);
}

static void trim_orphans(void)
{
    size_t before = mallinfo2().uordblks;
    malloc_trim(0);
    take_and_free(256);
    malloc_trim(0);
    size_t after = mallinfo2().uordblks;
    CHECK_SIZE("bytes in use in a child, after its trims as before", after, before);
    CHECK_SIZE("bytes in stacks after a trim", mallinfo2().fsmblks, 0);
    CHECK_SIZE("findings of hakmem_check", (size_t)hakmem_check(), 0);
}

static void fork_beside_full_stacks(void)
{
    enum { THREADS = 4 };
    pthread_barrier_init(&have_freed, NULL, THREADS + 1);
    for (int i = 0; i < THREADS; i++)
        started(free_and_wait, NULL);
    pthread_barrier_wait(&have_freed);
    in_child(trim_orphans);
}

/* The stacks of threads that a child hasn't got. */
static void trim_in_a_child_loses_no_block(void)
{
    expect_success("a fork beside threads", fork_beside_full_stacks);
}

int main(void)
{
    check_start("scavenger");
    watchdog(110);
    RUN(ends_with_the_last_thread);
    RUN(never_started_by_free);
    RUN(has_no_priority_of_another);
    RUN(rests_where_purges_fail);
    RUN(none_in_a_process_of_one_thread);
    RUN(trim_in_a_child_loses_no_block);
    return check_end();
}

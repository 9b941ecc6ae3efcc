/* The scavenger, hakmem's thread: when it starts and ends, what it must never delay, and what it
 * costs (traps 36, 39, 43, 57, 59, 69). Each case is a separate child. */
#include "trap.h"

#include <dirent.h>
#include <grp.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <hakmem/hakmem.h>

enum { SECONDS = 120, UNTESTED = 77 };

/* Whether a task has all signals blocked that a program can block. One that libc is just starting
 * has libc's own blocked too. */
static bool takes_no_signal(const char *task)
{
    enum { LIBCS_OWN = 32, ITS_LAST = 33 };
    char path[300], line[128];
    unsigned long long blocked = 0;
    snprintf(path, sizeof path, "/proc/self/task/%s/status", task);
    FILE *file = fopen(path, "r");
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        if (sscanf(line, "SigBlk: %llx", &blocked) == 1)
            break;
    if (file != NULL)
        fclose(file);
    const unsigned long long usual = 1ULL << (SIGUSR1 - 1) | 1ULL << (SIGTERM - 1);
    const unsigned long long own = 1ULL << (LIBCS_OWN - 1) | 1ULL << (ITS_LAST - 1);
    return (blocked & usual) == usual && (blocked & own) != own;
}

/* The number of the thread, 0 if there is none; `tasks` is how many the process has. */
static pid_t scavenger(unsigned *tasks)
{
    pid_t found = 0;
    DIR *directory = opendir("/proc/self/task");
    *tasks = 0;
    for (const struct dirent *entry; directory != NULL && (entry = readdir(directory)) != NULL;) {
        if (entry->d_name[0] == '.')
            continue;
        ++*tasks;
        if (takes_no_signal(entry->d_name))
            found = (pid_t)atoi(entry->d_name);
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

/* Another thread may be about to use the heap. What is allocated here starts nothing: only a
 * thread's first call may. */
static pid_t scavenger_soon(void)
{
    unsigned tasks;
    pid_t found = 0;
    for (int i = 0; i < 1000 && (found = scavenger(&tasks)) == 0; i++)
        usleep(10000);
    CHECK(found != 0, "a second thread uses the heap: expected a thread of hakmem's, found none");
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

static pthread_barrier_t have_looked;

static void *work_and_look(void *unused)
{
    scavenger_soon();
    pthread_barrier_wait(&have_looked);
    if (!check_all_passed())
        _exit(1);
    return unused;
}

static void all_threads_end(void)
{
    pthread_barrier_init(&have_looked, NULL, 2);
    for (int i = 0; i < 2; i++)
        started(work_and_look, NULL);
    pthread_exit(NULL);
}

TEST(ends_with_the_last_thread)
{
    expect_success("a process whose threads all ended", all_threads_end);
}

enum { LOADED = 64 * MiB, LOADED_BLOCK = 4 * MiB };

static void *load_and_free(void *unused)
{
    static void *blocks[LOADED / LOADED_BLOCK];
    for (size_t i = 0; i < LOADED / LOADED_BLOCK; i++)
        blocks[i] = memset(NEED("malloc", do_malloc(LOADED_BLOCK)), 1, LOADED_BLOCK);
    for (size_t i = 0; i < LOADED / LOADED_BLOCK; i++)
        do_free(blocks[i]);
    return unused;
}

static void last_thread_frees_all(void)
{
    struct hakmem_stats stats = {0};
    in_thread(load_and_free, NULL);
    hakmem_stats(&stats, sizeof stats);
    CHECK(stats.held < LOADED / 4, "a thread freed all and ended: held are %zu KiB",
          stats.held / KiB);
}

/* Nobody looks at the time any more, and this thread may make no call. */
TEST(what_the_last_thread_freed_goes_back)
{
    expect_success("a process whose other thread freed all", last_thread_frees_all);
}

/* The kernel agrees to this only for a process of one thread, as it does for a new user namespace.
 * A joined thread may need a moment to be gone for it, under any malloc. */
static bool alone_for_the_kernel(void)
{
    for (int i = 0; i < SECONDS * 1000; i++) {
        if (unshare(CLONE_THREAD) == 0)
            return true;
        usleep(1000);
    }
    return false;
}

static void *allocate(void *unused)
{
    do_free(NEED("malloc", do_malloc(100)));
    return unused;
}

static void *free_first(void *block)
{
    do_free(block);
    return allocate(NULL);
}

static void *leave_much(void *unused)
{
    take_and_free(1000);
    do_free(NEED("malloc", do_malloc(8 * MiB)));
    return unused;
}

static void *start_another(void *unused)
{
    allocate(NULL);
    in_thread(allocate, NULL);
    return unused;
}

static void threads_come_and_go(void)
{
    enum { ROUNDS = 60 };
    void *(*const uses[])(void *) = {allocate, free_first, leave_much, start_another};
    for (int i = 0; i < ROUNDS; i++) {
        pthread_t threads[3];
        int n = 1 + i % 3;
        for (int k = 0; k < n; k++)
            threads[k] = started(uses[(i + k) % 4], do_malloc(100));
        for (int k = 0; k < n; k++)
            pthread_join(threads[k], NULL);
        if (!CHECK(alone_for_the_kernel(), "after round %d: expected one thread, found more", i))
            return;
    }
}

static void in_a_new_namespace(void)
{
    in_thread(leave_much, NULL);
    if (alone_for_the_kernel() && unshare(CLONE_NEWUSER) != 0)
        CHECK(errno == EPERM || errno == ENOSPC || errno == ENOSYS,
              "unshare(CLONE_NEWUSER) after the threads' end: expected success, found %s",
              error_name(errno));
}

TEST(ends_when_the_program_is_alone)
{
    expect_success("a process whose threads come and go", threads_come_and_go);
    expect_success("a new user namespace", in_a_new_namespace);
}

/* ---- its start ---- */

static pthread_barrier_t all_have_allocated;

static void *allocate_and_wait(void *unused)
{
    allocate(NULL);
    pthread_barrier_wait(&all_have_allocated);
    return wait_for_ever(unused);
}

static void read_name(pid_t task, char *name, int room)
{
    char path[100];
    snprintf(path, sizeof path, "/proc/self/task/%d/comm", (int)task);
    FILE *file = fopen(path, "r");
    if (file == NULL || fgets(name, room, file) == NULL)
        name[0] = 0;
    if (file != NULL)
        fclose(file);
}

/* It names itself, so that may take a moment. Until then the thread that starts it may have been
 * taken for it, which blocks signals meanwhile: so it is looked for again each time. */
static void one_waits(void)
{
    char name[32] = "";
    unsigned tasks;
    started(wait_for_ever, NULL);
    pid_t found = scavenger_soon();
    bool named = getenv("HAKMEM_EXTRA_CALLS") != NULL;
    for (int i = 0; i < (named ? 1000 : 20) && strcmp(name, "hakmem\n") != 0; i++) {
        usleep(10000);
        if ((found = scavenger(&tasks)) != 0)
            read_name(found, name, sizeof name);
    }
    CHECK((strcmp(name, "hakmem\n") == 0) == named, "its name: expected %s, found %s",
          named ? "hakmem" : "the program's", name);
}

/* However many came and went shortly before. */
static void two_wait_after_many(void)
{
    for (int i = 0; i < 50; i++)
        in_thread(allocate, NULL);
    started(wait_for_ever, NULL);
    started(wait_for_ever, NULL);
    scavenger_soon();
}

static void one_frees_first(void)
{
    started(free_first, do_malloc(100));
    started(wait_for_ever, NULL);
    scavenger_soon();
}

TEST(there_for_threads_that_stay)
{
    expect_success("one thread beside the first", one_waits);
    expect_success("two threads after many short ones", two_wait_after_many);
    expect_success("a thread that frees first", one_frees_first);
}

static void forbid(const int *calls, unsigned n)
{
    struct sock_filter rules[16] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))};
    unsigned short last = 1;
    for (unsigned i = 0; i < n; i++) {
        rules[last++] =
            (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)calls[i], 0, 1);
        rules[last++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    }
    rules[last++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog program = {last, rules};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) != 0) {
        printf("scavenger: seccomp: %s: not tested\n", error_name(errno));
        fflush(stdout);
        _exit(UNTESTED);
    }
}

/* Threads are there, and none may be made any more. */
static void work_without_clone(void)
{
    const int clones[] = {SYS_clone,
#ifdef SYS_clone3
                          SYS_clone3
#endif
    };
    pthread_barrier_init(&all_have_allocated, NULL, 3);
    started(allocate_and_wait, NULL);
    started(allocate_and_wait, NULL);
    pthread_barrier_wait(&all_have_allocated);
    forbid(clones, sizeof clones / sizeof *clones);
    use_the_heap(1);
    take_and_free(64);
    take_and_free(1000);
    for (int i = 0; i < 20; i++)
        do_free(NEED("malloc", do_malloc(8 * MiB)));
}

TEST(never_started_later)
{
    expect_success("a process that may make no threads any more", work_without_clone);
}

static void start_with_priorities_forbidden(void)
{
    const int priorities[] = {SYS_sched_setscheduler, SYS_sched_setparam, SYS_sched_setattr};
    forbid(priorities, sizeof priorities / sizeof *priorities);
    started(wait_for_ever, NULL);
    scavenger_soon();
}

TEST(asks_for_no_priority)
{
    expect_success("a process that may set no priorities", start_with_priorities_forbidden);
}

static void *nothing(void *unused) { return unused; }

/* Libc frees what a thread on a stack of the program's had with its list of stacks locked, which
 * pthread_create takes: here by the first call of a new thread. */
static void *join_first(void *thread)
{
    pthread_join(*(pthread_t *)thread, NULL);
    return allocate(NULL);
}

static void join_before_all_else(void)
{
    enum { STACK = 256 * KiB };
    pthread_t thread;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    for (int i = 0; i < 20; i++) {
        pthread_attr_setstack(&attributes, pages_from_kernel(STACK), STACK);
        CHECK_ERROR("pthread_create", pthread_create(&thread, &attributes, nothing, NULL), 0);
        in_thread(join_first, &thread);
    }
}

TEST(never_started_by_free)
{
    expect_success("a thread that first joins another", join_before_all_else);
}

/* ---- how it runs ---- */

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

TEST(rests_where_purges_fail)
{
    expect_success("a process with all memory locked", rest_with_all_locked);
}

/* ---- children ---- */

static void expect_one_task(const char *whose)
{
    unsigned tasks;
    take_and_free(64);
    bool one = alone_for_the_kernel();
    scavenger(&tasks);
    CHECK(one && tasks == 1, "%s: expected 1 task, found %u", whose, tasks);
}

static void child_alone(void) { expect_one_task("a child of one thread"); }

static void thread_came_and_went(void)
{
    in_thread(allocate, NULL);
    in_child(child_alone);
    expect_one_task("a process whose other thread has ended");
}

TEST(none_in_a_process_of_one_thread)
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
TEST(trim_in_a_child_loses_no_block)
{
    expect_success("a fork beside threads", fork_beside_full_stacks);
}

/* ---- its credentials ---- */

enum { NOBODY = 65534 };

static void *become_nobody(void *unused)
{
    CHECK_SIZE("setgroups", (size_t)setgroups(0, NULL), 0);
    CHECK_SIZE("setresgid", (size_t)setresgid(NOBODY, NOBODY, NOBODY), 0);
    CHECK_SIZE("setresuid", (size_t)setresuid(NOBODY, NOBODY, NOBODY), 0);
    return unused;
}

/* Counts a task with these credentials and no others as right; one that is gone as neither. */
static void look_at_task(const char *task, unsigned *right, unsigned *wrong)
{
    char path[300], line[256];
    unsigned ids[4], found = 0, looked = 0;
    snprintf(path, sizeof path, "/proc/self/task/%s/status", task);
    FILE *file = fopen(path, "r");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        bool groups = strncmp(line, "Groups:", 7) == 0;
        bool any = sscanf(line, "%*[UG]id: %u %u %u %u", ids, ids + 1, ids + 2, ids + 3) == 4;
        looked += any + groups;
        for (unsigned i = 0; any && i < 4; i++)
            found += ids[i] == NOBODY;
        found += groups && strpbrk(line, "0123456789") == NULL;
    }
    if (file != NULL)
        fclose(file);
    *right += looked == 3 && found == 9;
    *wrong += looked == 3 && found != 9;
}

static void give_up_root(void)
{
    unsigned right = 0, wrong = 0;
    if (geteuid() != 0)
        _exit(UNTESTED);
    for (int i = 0; i < 2; i++)
        started(wait_for_ever, NULL);
    scavenger_soon();
    in_thread(become_nobody, NULL);
    DIR *directory = opendir("/proc/self/task");
    for (const struct dirent *entry; directory != NULL && (entry = readdir(directory)) != NULL;)
        if (entry->d_name[0] != '.')
            look_at_task(entry->d_name, &right, &wrong);
    if (directory != NULL)
        closedir(directory);
    CHECK_SIZE("tasks with the former credentials", wrong, 0);
    CHECK(right >= 4, "expected this thread, two more and hakmem's, found %u tasks", right);
}

/* Libc signals every thread that it has started. */
TEST(has_the_credentials_of_the_others)
{
    expect_success("a process that gives up root's credentials", give_up_root);
}

int main(void) { return tests_main("scavenger"); }

/* fork: the child has a working heap with all blocks of the parent, of every thread. Handlers of
 * pthread_atfork may allocate, also those registered before the allocator's first call (traps 39 to
 * 42). Forks under load are in ../stress/stress_fork.c. */
#include "check.h"

#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *volatile activity = "start";

/* A hang is the usual failure here. */
static void on_alarm(int number)
{
    static const char text[] = "fork.c: expected an end, found a hang in: ";
    (void)number;
    if (write(STDERR_FILENO, text, sizeof text - 1) < 0 ||
        write(STDERR_FILENO, activity, strlen(activity)) < 0 || write(STDERR_FILENO, "\n", 1) < 0)
        _exit(99);
    _exit(1);
}

static void give_up_after(unsigned seconds)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_alarm;
    sigaction(SIGALRM, &action, NULL);
    alarm(seconds);
}

/* All sizes, so that each kind of block and of lock is met. */
static void use_the_heap(unsigned number)
{
    enum { N = 60 };
    unsigned char *blocks[N];
    size_t n = 1;
    for (unsigned i = 0; i < N; i++, n = n < 6 * MiB ? n + n / 2 + 1 : 1) {
        blocks[i] = NEED("malloc", do_malloc(n));
        blocks[i][0] = blocks[i][n - 1] = (unsigned char)(i + number);
    }
    n = 1;
    for (unsigned i = 0; i < N; i++, n = n < 6 * MiB ? n + n / 2 + 1 : 1) {
        CHECK(blocks[i][0] == (unsigned char)(i + number), "block of %zu bytes changed", n);
        do_free(blocks[i]);
    }
}

/* ---- handlers ---- */

static bool handlers_allocate;
static void *made_before_fork;
static unsigned handler_calls;

static void handler_before(void)
{
    if (!handlers_allocate)
        return;
    activity = "a handler before fork";
    made_before_fork = NEED("malloc in a handler", do_malloc(100));
    use_the_heap(1);
    handler_calls++;
}

static void handler_after(void)
{
    if (!handlers_allocate)
        return;
    activity = "a handler after fork";
    do_free(made_before_fork);
    use_the_heap(2);
    handler_calls++;
}

static void register_handlers(void)
{
    int error = pthread_atfork(handler_before, handler_after, handler_after);
    CHECK(error == 0, "pthread_atfork: %s", error_name(error));
}

/* Before the program has called the allocator. */
__attribute__((constructor(101))) static void before_all(void) { register_handlers(); }

/* ---- children ---- */

/* The child's part is over when f returns; its checks decide how it ends. */
static void in_child(void (*f)(void))
{
    int status = -1;
    activity = "fork";
    pid_t pid = fork();
    if (pid == 0) {
        activity = "the child";
        give_up_after(120);
        f();
        _exit(!check_all_passed());
    }
    activity = "the parent's wait";
    if (CHECK(pid > 0 && waitpid(pid, &status, 0) == pid, "fork: %s", error_name(errno)))
        CHECK(status == 0, "status of the child: expected 0, found %#x", (unsigned)status);
    activity = "the parent";
}

enum { LEFT = 3000 };
static void *left[LEFT];

static size_t size_left(unsigned i) { return i % 50 == 0 ? i * 120 + 1 : i % 2000 + 1; }

static void *make_left(void *unused)
{
    for (unsigned i = 0; i < LEFT; i++) {
        left[i] = NEED("malloc", do_malloc(size_left(i)));
        pattern_fill(left[i], size_left(i), i);
    }
    return unused;
}

static void free_left(void)
{
    for (unsigned i = 0; i < LEFT; i++) {
        CHECK_PATTERN(left[i], size_left(i), i);
        do_free(left[i]);
    }
    use_the_heap(3);
}

static void child_frees_what_the_parent_made(void)
{
    make_left(NULL);
    for (int i = 0; i < 20; i++)
        in_child(free_left);
    free_left();
}

static void child_works(void) { use_the_heap(4); }

static void child_forks(void)
{
    use_the_heap(5);
    in_child(child_works);
    use_the_heap(6);
}

static void children_of_children(void)
{
    for (int i = 0; i < 10; i++)
        in_child(child_forks);
}

/* A thread that makes blocks, frees some, and waits with the rest of them in its cache. */
static pthread_mutex_t gate_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t gate = PTHREAD_COND_INITIALIZER;
static enum { WORKING, READY, LEAVE } stage;

static void next_stage(int to)
{
    pthread_mutex_lock(&gate_lock);
    stage = to;
    pthread_cond_broadcast(&gate);
    pthread_mutex_unlock(&gate_lock);
}

static void wait_for_stage(int wanted)
{
    pthread_mutex_lock(&gate_lock);
    while ((int)stage != wanted)
        pthread_cond_wait(&gate, &gate_lock);
    pthread_mutex_unlock(&gate_lock);
}

static void *make_and_wait(void *unused)
{
    use_the_heap(7);
    make_left(NULL);
    next_stage(READY);
    wait_for_stage(LEAVE);
    free_left();
    return unused;
}

static void *work_in_thread(void *unused)
{
    use_the_heap(8);
    return unused;
}

static void child_frees_and_starts_threads(void)
{
    pthread_t threads[4];
    free_left();
    if (UNDER_EMULATOR)
        return;
    for (int i = 0; i < 4; i++)
        if (pthread_create(&threads[i], NULL, work_in_thread, NULL) != 0)
            CHECK(false, "pthread_create in the child failed");
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
}

static void fork_beside_a_sleeping_thread(void)
{
    pthread_t thread;
    stage = WORKING;
    int error = pthread_create(&thread, NULL, make_and_wait, NULL);
    if (!CHECK(error == 0, "pthread_create: %s", error_name(error)))
        return;
    wait_for_stage(READY);
    for (int i = 0; i < 20; i++)
        in_child(child_frees_and_starts_threads);
    next_stage(LEAVE);
    pthread_join(thread, NULL);
}

static void *fork_here(void *unused)
{
    in_child(child_forks);
    in_child(child_works);
    return unused;
}

static void fork_from_another_thread(void)
{
    for (int i = 0; i < 10; i++) {
        pthread_t thread;
        int error = pthread_create(&thread, NULL, fork_here, NULL);
        if (CHECK(error == 0, "pthread_create: %s", error_name(error)))
            pthread_join(thread, NULL);
    }
}

static void spawn_runs_no_handlers(void)
{
    extern char **environ;
    char *const arguments[] = {"fork", "--nothing", NULL};
    /* The kernel starts no program of another processor. */
    const char *program = UNDER_EMULATOR ? "/bin/true" : "/proc/self/exe";
    for (int i = 0; i < 20; i++) {
        pid_t pid;
        int status = -1, error = posix_spawn(&pid, program, NULL, NULL, arguments, environ);
        if (!CHECK(error == 0, "posix_spawn: %s", error_name(error)))
            return;
        waitpid(pid, &status, 0);
        CHECK(status == 0, "status of what was spawned: expected 0, found %#x", (unsigned)status);
        use_the_heap(9);
    }
}

static pthread_barrier_t all_there;

static void *hold_a_cache(void *unused)
{
    use_the_heap(10);
    pthread_barrier_wait(&all_there);
    pthread_barrier_wait(&all_there);
    return unused;
}

/* Its first call of malloc is in a handler, inside the allocator's own, and no cache lies unused:
 * the new one is held like all others until the fork is over. */
static void fork_from_a_thread_without_a_cache(void)
{
    enum { HOLDERS = 8 };
    pthread_t holders[HOLDERS];
    pthread_barrier_init(&all_there, NULL, HOLDERS + 1);
    for (int i = 0; i < HOLDERS; i++)
        if (pthread_create(&holders[i], NULL, hold_a_cache, NULL) != 0)
            NEED("a thread", NULL);
    pthread_barrier_wait(&all_there);
    handlers_allocate = true;
    pthread_t thread;
    if (CHECK(pthread_create(&thread, NULL, fork_here, NULL) == 0, "pthread_create failed"))
        pthread_join(thread, NULL);
    handlers_allocate = false;
    pthread_barrier_wait(&all_there);
    for (int i = 0; i < HOLDERS; i++)
        pthread_join(holders[i], NULL);
}

static void handlers_that_allocate(void)
{
    handlers_allocate = true;
    for (int i = 0; i < 10; i++)
        in_child(child_works);
    CHECK_SIZE("calls of the handlers in the parent", handler_calls, 20);
    fork_beside_a_sleeping_thread();
    handlers_allocate = false;
}

int main(int argc, char **argv)
{
    (void)argv;
    if (argc > 1)
        return 0;
    check_start("fork");
    give_up_after(120);
    RUN(child_frees_what_the_parent_made);
    RUN(children_of_children);
    RUN(fork_beside_a_sleeping_thread);
    RUN(fork_from_another_thread);
    RUN(spawn_runs_no_handlers);
    RUN(handlers_that_allocate);
    RUN(fork_from_a_thread_without_a_cache);
    return check_end();
}

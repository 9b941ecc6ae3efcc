/* fork: the child has a working heap with all blocks of the parent, of every thread. Handlers of
 * pthread_atfork may allocate, also those registered before the allocator's first call (traps 39 to
 * 42). Forks under load are in ../stress/stress_fork.c. */
#include "check.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- handlers ---- */

static bool handlers_allocate;
static void *made_before_fork;
static unsigned handler_calls;

static void handler_before(void)
{
    if (!handlers_allocate)
        return;
    made_before_fork = NEED("malloc in a handler", do_malloc(100));
    use_the_heap(1);
    handler_calls++;
}

static void handler_after(void)
{
    if (!handlers_allocate)
        return;
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

TEST(child_frees_what_the_parent_made)
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

TEST(children_of_children)
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
    free_left();
    if (!UNDER_EMULATOR)
        in_threads(4, work_in_thread);
}

TEST(fork_beside_a_sleeping_thread)
{
    stage = WORKING;
    pthread_t thread = started(make_and_wait, NULL);
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

TEST(fork_from_another_thread)
{
    for (int i = 0; i < 10; i++)
        in_thread(fork_here, NULL);
}

TEST(spawn_runs_no_handlers)
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
TEST(fork_from_a_thread_without_a_cache)
{
    enum { HOLDERS = 8 };
    pthread_t holders[HOLDERS];
    pthread_barrier_init(&all_there, NULL, HOLDERS + 1);
    threads_start(holders, HOLDERS, hold_a_cache);
    pthread_barrier_wait(&all_there);
    handlers_allocate = true;
    in_thread(fork_here, NULL);
    handlers_allocate = false;
    pthread_barrier_wait(&all_there);
    threads_join(holders, HOLDERS);
}

TEST(handlers_that_allocate)
{
    handler_calls = 0;
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
    return tests_main("fork");
}

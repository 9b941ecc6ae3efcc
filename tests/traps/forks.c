/* Forks in every order with the program's own handlers, and children that are no forks: vfork,
 * clone that shares memory, a thread that libc knows nothing of (traps 39 to 43). Forks under load
 * are ../stress/stress_fork.c, handlers from before the first call ../api/fork.c. */
#include "trap.h"

#include "hakmem/hakmem.h"

#include <dirent.h>
#include <dlfcn.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHILD_STACK (256 * KiB)

static struct crew crew;
static volatile bool stop;

static void work_in_child(void) { use_the_heap(1); }

/* ---- handlers ---- */

enum { HANDLERS = 100 };
static void *held[HANDLERS];
static unsigned n_held;
static bool handlers_on;

static void hold(void)
{
    if (!handlers_on)
        return;
    held[n_held] = NEED("malloc before fork", do_malloc(n_held * 500));
    pattern_fill(held[n_held], n_held * 500, n_held);
    n_held++;
}

static void let_go(void)
{
    if (!handlers_on)
        return;
    n_held--;
    CHECK_PATTERN(held[n_held], n_held * 500, n_held);
    do_free(held[n_held]);
    do_free(do_malloc(n_held * 40));
}

static void fork_some(void)
{
    for (int i = 0; i < 15; i++) {
        in_child(work_in_child);
        CHECK_SIZE("blocks still held by handlers", n_held, 0);
    }
}

/* So many that libc allocates for the list of them. */
TEST(hundreds_of_handlers)
{
    for (unsigned i = 0; i < HANDLERS; i++)
        CHECK(pthread_atfork(hold, let_go, let_go) == 0, "pthread_atfork failed");
    handlers_on = true;
    fork_some();
    beside_crew(&crew, fork_some);
    handlers_on = false;
}

/* A library's handlers take its lock, as is usual; its other thread allocates under that lock. The
 * allocator's own handler must run after those, or the two would wait for each other. */
static pthread_mutex_t library_lock = PTHREAD_MUTEX_INITIALIZER;
static bool library_forks;

static void library_before(void)
{
    if (library_forks)
        pthread_mutex_lock(&library_lock);
}

static void library_after(void)
{
    if (library_forks)
        pthread_mutex_unlock(&library_lock);
}

static void *allocate_under_lock(void *seat)
{
    while (!stop) {
        pthread_mutex_lock(&library_lock);
        seat_work(seat, 50);
        pthread_mutex_unlock(&library_lock);
        sched_yield();
    }
    return NULL;
}

TEST(handlers_that_wait_for_a_thread_that_allocates)
{
    CHECK(pthread_atfork(library_before, library_after, library_after) == 0,
          "pthread_atfork failed");
    library_forks = true;
    stop = false;
    pthread_t other = started(allocate_under_lock, &crew.seats[0]);
    fork_some();
    stop = true;
    pthread_join(other, NULL);
    library_forks = false;
}

/* ---- children that share memory ---- */

static void *from_child;

static void check_from_child(int status)
{
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "child: expected status 0, found %#x",
          (unsigned)status);
    CHECK_PATTERN(from_child, 4000, 3);
    do_free(from_child);
}

/* It runs on the parent's thread-local memory while the parent waits: its calls are the parent's.
 * More than exec and _exit is not allowed there, but programs do it. */
static int allocate_as_parent(void *unused)
{
    (void)unused;
    use_the_heap(2);
    from_child = do_malloc(4000);
    pattern_fill(from_child, 4000, 3);
    return 0;
}

static void children_by_vfork(void)
{
    for (int i = 0; i < 20; i++) {
        int status = -1;
        pid_t child = vfork();
        if (child == 0)
            _exit(allocate_as_parent(NULL));
        waitpid(child, &status, 0);
        check_from_child(status);
    }
}

static void children_by_clone(void)
{
    char *stack = pages_from_kernel(CHILD_STACK);
    for (int i = 0; i < 20; i++) {
        int status = -1;
        pid_t child =
            clone(allocate_as_parent, stack + CHILD_STACK, CLONE_VM | CLONE_VFORK | SIGCHLD, NULL);
        if (!CHECK(child > 0, "clone: %s", error_name(errno)))
            return;
        waitpid(child, &status, 0);
        check_from_child(status);
    }
}

static void spawn_some(void)
{
    extern char **environ;
    char *const arguments[] = {"forks", "--nothing", NULL};
    for (int i = 0; i < 20; i++) {
        pid_t child = -1;
        int status = -1;
        posix_spawn_file_actions_t actions;
        posix_spawn_file_actions_init(&actions);
        posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", 0, 0);
        int error = posix_spawn(&child, "/proc/self/exe", &actions, NULL, arguments, environ);
        posix_spawn_file_actions_destroy(&actions);
        if (!CHECK(error == 0, "posix_spawn: %s", error_name(error)))
            return;
        waitpid(child, &status, 0);
        CHECK(status == 0, "what was spawned: expected status 0, found %#x", (unsigned)status);
    }
}

/* No handler of fork may have run, and nothing may wait for one. */
TEST(children_that_run_no_handlers)
{
    handlers_on = true;
    spawn_some();
    children_by_vfork();
    children_by_clone();
    beside_crew(&crew, spawn_some);
    beside_crew(&crew, children_by_vfork);
    beside_crew(&crew, children_by_clone);
    CHECK_SIZE("blocks held by handlers", n_held, 0);
    handlers_on = false;
}

/* ---- a thread that libc does not know ---- */

#if defined(__x86_64__) && defined(__GLIBC__)

/* The start of what the thread register points to, by the platform's conventions for C libraries:
 * itself, and the guards of stacks and pointers. */
struct thread_block {
    void *self, *vector, *own;
    int several, unused;
    uintptr_t sysinfo, stack_guard, pointer_guard;
};

static struct thread_block *own_block(void)
{
    struct thread_block *block;
    __asm__("mov %%fs:0, %0" : "=r"(block));
    return block;
}

static struct crew *raw_crew;
static int raw_thread; /* its number; the kernel clears it at its end */

static int raw_work(void *seat)
{
    seat_work(seat, 3000);
    syscall(SYS_exit, 0); /* no destructor runs */
    return 0;
}

/* What takes caches from sleeping threads must not write where their thread-local memory was. */
static void blocks_in_their_place(void)
{
    enum { EACH = 60, SIZES = 30 };
    static void *blocks[SIZES][EACH];
    for (unsigned size = 0; size < SIZES; size++)
        for (unsigned i = 0; i < EACH; i++) {
            blocks[size][i] = NEED("malloc", do_malloc(512 * (size + 1)));
            pattern_fill(blocks[size][i], 512 * (size + 1), i);
        }
    hakmem_purge();
    for (unsigned size = 0; size < SIZES; size++)
        for (unsigned i = 0; i < EACH; i++) {
            CHECK_PATTERN(blocks[size][i], 512 * (size + 1), i);
            do_free(blocks[size][i]);
        }
}

/* Memory for thread-local variables comes from the loader; everything else pthread_create would do
 * is left undone. */
TEST_AT(1, threads_without_an_end, false)
{
    void *(*allocate)(void *) = (void *(*)(void *))dlsym(RTLD_DEFAULT, "_dl_allocate_tls");
    void (*deallocate)(void *, bool) =
        (void (*)(void *, bool))dlsym(RTLD_DEFAULT, "_dl_deallocate_tls");
    if (allocate == NULL || deallocate == NULL) {
        printf("forks: this loader has no _dl_allocate_tls: not tested\n");
        return;
    }
    static struct crew own_crew;
    crew_make(&own_crew, 1, 200);
    raw_crew = &own_crew;
    char *stack = pages_from_kernel(CHILD_STACK);
    for (int i = 0; i < 40; i++) {
        struct thread_block *block = allocate(NULL);
        if (!CHECK(block != NULL, "no thread-local memory"))
            return;
        block->self = block->own = block;
        block->stack_guard = own_block()->stack_guard;
        block->pointer_guard = own_block()->pointer_guard;
        int flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD |
                    CLONE_SYSVSEM | CLONE_SETTLS | CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID;
        if (!CHECK(clone(raw_work, stack + CHILD_STACK, flags, raw_crew->seats, &raw_thread, block,
                         &raw_thread) > 0,
                   "clone: %s", error_name(errno)))
            return;
        for (int number; (number = __atomic_load_n(&raw_thread, __ATOMIC_ACQUIRE)) != 0;)
            syscall(SYS_futex, &raw_thread, FUTEX_WAIT, number, NULL, NULL, 0);
        deallocate(block, true);
        if (i % 10 == 9) {
            in_child(work_in_child);
            crew_clear(raw_crew);
        }
    }
    crew_clear(raw_crew);
    blocks_in_their_place();
    use_the_heap(4);
}
#else
TEST_AT(1, threads_without_an_end, false)
{
    printf("forks: no threads of clone alone on this platform\n");
}
#endif

/* ---- nobody else ---- */

static unsigned tasks(void)
{
    unsigned n = 0;
    DIR *directory = opendir("/proc/self/task");
    for (const struct dirent *entry; directory != NULL && (entry = readdir(directory)) != NULL;)
        n += entry->d_name[0] != '.';
    if (directory != NULL)
        closedir(directory);
    return n;
}

/* A process of one thread stays one. */
TEST_AT(0, no_thread_of_the_allocator, false)
{
    seat_work(&crew.seats[0], 20000);
    CHECK_SIZE("threads of the process", tasks(), 1);
}

int main(int argc, char **argv)
{
    (void)argv;
    if (argc > 1)
        return 0;
    check_start("forks");
    crew_make(&crew, 3, 100);
    tests_run();
    crew_clear(&crew);
    return check_end();
}

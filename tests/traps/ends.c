/* The end of a process: hundreds of functions for exit that allocate, frees after every
 * destructor, after libc has given up its own memory, after quick_exit, and a main thread that
 * leaves the others alone. Each case is a child of its own (traps 30, 31, 36). */
#include "trap.h"

#include <dlfcn.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FUNCTIONS = 500 };
static void *blocks[FUNCTIONS];
static unsigned called;

static void leave_if_failed(void)
{
    if (!check_all_passed())
        _exit(1);
}

/* The exit status is decided by now; only _exit can still tell. */
static void at_end(void)
{
    CHECK_PATTERN(blocks[called], called * 100, called);
    do_free(blocks[called]);
    if (called % 100 == 0)
        use_the_heap(called);
    do_free(do_malloc(called * 10));
    called++;
    leave_if_failed();
}

__attribute__((destructor(101))) static void after_all(void)
{
    if (called == 0)
        return;
    CHECK_SIZE("functions called at the end", called, FUNCTIONS);
    use_the_heap(3);
    leave_if_failed();
}

static void make_blocks(void)
{
    for (unsigned i = 0; i < FUNCTIONS; i++) {
        blocks[i] = NEED("malloc", do_malloc(i * 100));
        pattern_fill(blocks[i], i * 100, i);
    }
}

/* The child must end by itself and with `expected`. */
static void expect_end(void (*f)(void), int expected)
{
    int status = -1;
    pid_t child = fork();
    if (child == 0) {
        watchdog(300);
        f();
        _exit(99);
    }
    waitpid(child, &status, 0);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == expected,
          "end of the child: expected exit status %d, found wait status %#x", expected,
          (unsigned)status);
}

/* ---- exit ---- */

static void exit_after_many(void)
{
    make_blocks();
    for (unsigned i = 0; i < FUNCTIONS; i++)
        if (atexit(at_end) != 0)
            _exit(1);
    exit(7);
}

TEST(functions_for_exit_allocate) { expect_end(exit_after_many, 7); }

static void quick_exit_after_many(void)
{
    make_blocks();
    for (unsigned i = 0; i < FUNCTIONS; i++)
        if (at_quick_exit(at_end) != 0)
            _exit(1);
    quick_exit(8);
}

TEST(functions_for_quick_exit_allocate) { expect_end(quick_exit_after_many, 8); }

static void *exit_here(void *unused)
{
    exit(7);
    return unused;
}

static void *allocate_for_ever(void *seat)
{
    while (seat != NULL)
        seat_work(seat, 100);
    return NULL;
}

static void exit_of_another_thread(void)
{
    struct crew crew;
    crew_make(&crew, 3, 100);
    make_blocks();
    for (unsigned i = 0; i < FUNCTIONS; i++)
        if (atexit(at_end) != 0)
            _exit(1);
    for (unsigned i = 0; i < crew.n; i++)
        started(allocate_for_ever, &crew.seats[i]);
    started(exit_here, NULL);
    for (;;)
        pause();
}

/* exit runs in one thread while others go on allocating. */
TEST(exit_beside_threads_that_allocate) { expect_end(exit_of_another_thread, 7); }

/* ---- after libc has given up its memory ---- */

static void exit_after_freeres(void)
{
    void (*freeres)(void) = (void (*)(void))dlsym(RTLD_DEFAULT, "__libc_freeres");
    FILE *file = fopen("/dev/null", "w"); /* some of libc's memory to be given up */
    setenv("TRAP_ENDS", "1", 1);
    make_blocks();
    use_the_heap(1);
    if (file != NULL && freeres != NULL)
        freeres();
    for (called = 0; called < FUNCTIONS;)
        at_end();
    use_the_heap(2);
    _exit(freeres != NULL ? 9 : 77);
}

/* What checkers for memory call before they count what is left. */
TEST(frees_after_libc_gave_up_its_memory)
{
#ifdef __GLIBC__
    expect_end(exit_after_freeres, dlsym(RTLD_DEFAULT, "__libc_freeres") != NULL ? 9 : 77);
#endif
}

/* ---- a main thread that leaves ---- */

static pthread_t main_thread;

static void work_alone(void) { use_the_heap(5); }

static void *last_one(void *unused)
{
    pthread_join(main_thread, NULL);
    for (unsigned i = 0; i < FUNCTIONS; i++) {
        CHECK_PATTERN(blocks[i], i * 100, i);
        do_free(blocks[i]);
    }
    for (int i = 0; i < 5; i++)
        use_the_heap(4);
    in_child(work_alone);
    leave_if_failed();
    exit(5);
    return unused;
}

static void main_leaves(void)
{
    main_thread = pthread_self();
    make_blocks();
    started(last_one, NULL);
    pthread_exit(NULL);
}

TEST(main_thread_leaves_others_alone) { expect_end(main_leaves, 5); }

int main(void)
{
    use_the_heap(0);
    return tests_main("ends");
}

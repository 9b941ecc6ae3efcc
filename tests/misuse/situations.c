/* Where a misuse happens: in which thread, with which handlers, in which state of the process. */
#include "cases.h"

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define THREADS 64

static char of_the_program[64] __attribute__((aligned(64)));

static void say(const char *line)
{
    if (write(STDOUT_FILENO, line, strlen(line)) < 0)
        _exit(98);
}

static void *wrong_in_thread(void *unused)
{
    (void)unused;
    pthread_setname_np(pthread_self(), "wrong-doer");
    wrong_free(of_the_program);
    return NULL;
}

static void start_thread(pthread_t *thread, void *(*work)(void *), size_t stack)
{
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    if (stack != 0)
        pthread_attr_setstacksize(&attributes, stack);
    if (pthread_create(thread, &attributes, work, NULL) != 0)
        _exit(77);
    pthread_attr_destroy(&attributes);
}

/* ---- threads ---- */

CASE(in_a_thread)
{
    pthread_t thread;
    start_thread(&thread, wrong_in_thread, n);
    pthread_join(thread, NULL);
}

static pthread_barrier_t barrier;

static void *wrong_together(void *unused)
{
    (void)unused;
    void *p = get(100);
    pthread_barrier_wait(&barrier);
    do_free(p);
    do_free(of_the_program);
    return NULL;
}

CASE(in_many_threads)
{
    static pthread_t threads[THREADS];
    pthread_barrier_init(&barrier, NULL, (unsigned)n);
    culprit(of_the_program);
    for (size_t i = 0; i < n; i++)
        start_thread(&threads[i], wrong_together, 0);
    for (size_t i = 0; i < n; i++)
        pthread_join(threads[i], NULL);
}

static void *wrong_and_cancelled(void *unused)
{
    culprit(of_the_program);
    pthread_cancel(pthread_self());
    watched_free(of_the_program);
    return unused;
}

CASE(in_a_cancelled_thread)
{
    pthread_t thread;
    start_thread(&thread, wrong_and_cancelled, 0);
    pthread_join(thread, NULL);
}

/* ---- signal handlers ---- */

static void wrong_in_handler(int number)
{
    (void)number;
    wrong_free(of_the_program);
}

CASE(in_a_handler)
{
    signal(SIGUSR1, wrong_in_handler);
    raise(SIGUSR1);
}

CASE(on_a_small_signal_stack)
{
    static char stack[16384];
    const stack_t given = {.ss_sp = stack, .ss_size = sizeof stack};
    struct sigaction action = {.sa_handler = wrong_in_handler, .sa_flags = SA_ONSTACK};
    sigaltstack(&given, NULL);
    sigaction(SIGUSR1, &action, NULL);
    raise(SIGUSR1);
}

static void allocate_much(int number)
{
    (void)number;
    static void *some[1000];
    for (unsigned i = 0; i < 50000; i++) {
        do_free(some[i % 1000]);
        some[i % 1000] = get(i * 37 % 20000 + 1);
    }
    say("handled\n");
}

CASE(with_an_abort_handler)
{
    signal(SIGABRT, allocate_much);
    if (n > 1)
        in_many_threads(n);
    wrong_free(of_the_program);
}

static void misuse_again(int number)
{
    (void)number;
    say("handled\n");
    do_free(of_the_program + 16);
}

CASE(with_a_wrong_abort_handler)
{
    signal(SIGABRT, misuse_again);
    wrong_free(of_the_program);
}

static sigjmp_buf before_the_misuse;

static void jump_out(int number)
{
    (void)number;
    siglongjmp(before_the_misuse, 1);
}

CASE(with_an_abort_handler_that_jumps)
{
    signal(SIGABRT, jump_out);
    if (sigsetjmp(before_the_misuse, 1) == 0)
        wrong_free(of_the_program);
    say("jumped\n");
    do_free(of_the_program + 16);
}

CASE(with_abort_ignored_and_blocked)
{
    sigset_t all;
    sigfillset(&all);
    signal(SIGABRT, SIG_IGN);
    sigprocmask(SIG_SETMASK, &all, NULL);
    wrong_free(of_the_program);
}

/* ---- standard error ---- */

CASE(with_stderr_closed)
{
    close(STDERR_FILENO);
    wrong_free(of_the_program);
}

CASE(with_nobody_reading_stderr)
{
    int ends[2];
    if (pipe(ends) != 0)
        _exit(77);
    close(ends[0]);
    dup2(ends[1], STDERR_FILENO);
    wrong_free(of_the_program);
}

/* ---- children ---- */

static void wait_for(pid_t child)
{
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child)
        _exit(77);
    say(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT ? "child aborted\n" : "child lived\n");
}

CASE(in_a_child)
{
    void *p = get(100);
    pid_t child = fork();
    if (child == 0) {
        /* What a child's first calls start is no matter of the report's. */
        for (int i = 0; i < 4; i++)
            do_free(get(1000000));
        do_free(p);
        wrong_free(p);
        _exit(0);
    }
    wait_for(child);
}

static void *fork_in_thread(void *unused)
{
    (void)unused;
    in_a_child(0);
    return NULL;
}

CASE(in_a_child_of_a_thread)
{
    pthread_t thread;
    start_thread(&thread, fork_in_thread, 0);
    pthread_join(thread, NULL);
}

/* The parent has begun a report, which the child must not take for its own. */
static void fork_and_misuse(int number)
{
    (void)number;
    signal(SIGABRT, SIG_DFL);
    pid_t child = fork();
    if (child == 0) {
        do_free(of_the_program);
        _exit(0);
    }
    wait_for(child);
}

CASE(in_a_child_of_an_abort_handler)
{
    signal(SIGABRT, fork_and_misuse);
    wrong_free(of_the_program);
}

/* ---- a damaged stack ---- */

static void overwrite(uintptr_t *words, unsigned n)
{
    for (volatile unsigned i = 0; i < n; i++)
        words[i] = 0x4142434445464748;
}

CASE(damage_return)
{
    overwrite(__builtin_frame_address(0), 4);
    wrong_free(of_the_program);
    _exit(96);
}

__attribute__((noinline)) static void damage_frame_pointer(void)
{
    overwrite(__builtin_frame_address(0), 1);
    wrong_free(of_the_program);
    _exit(96);
}

/* Whose frame is found by the frame pointer, since its size is known at run time only. */
CASE(damage_callers_frame)
{
    char array[n + 16];
    memset(array, 0, sizeof array);
    __asm__ volatile("" : : "r"(array) : "memory");
    damage_frame_pointer();
    __asm__ volatile("" : : "r"(array) : "memory");
}

/* ---- dlopen holds a lock while it runs constructors ---- */

__attribute__((visibility("default"))) void constructor_work(void) { in_a_thread(0); }

CASE(while_a_library_loads)
{
    if (dlopen(MISUSE_MODULE, RTLD_NOW) == NULL)
        say("no module\n");
}

/* ---- among right calls ---- */

#define SLOTS 300
#define TURNS 60000

/* Between a free and the wrong one that follows it no other thread takes a block: the first frees
 * of a thread, and those of one that rests, go straight to their slabs, where others find them. */
static pthread_rwlock_t taking = PTHREAD_RWLOCK_INITIALIZER;

static void some_wrong_call(unsigned kind)
{
    char *p;
    switch (kind % 7) {
    case 0:
        do_free(of_the_program);
        return;
    case 1:
        do_free(of_the_program + 8);
        return;
    case 2:
        if (do_realloc(of_the_program, 100) != NULL)
            _exit(3);
        return;
    case 3:
        do_free(p = get(kind % 2000));
        do_free(p);
        return;
    case 4:
        p = get(1000000);
        do_free(p + 65536);
        do_free(p);
        return;
    case 5:
        p = get(1000000);
        do_free(p + 16);
        if (do_usable_size(p + 65536) != 0 || do_realloc(p + 32, 5) != NULL)
            _exit(3);
        do_free(p);
        do_free(p);
        return;
    case 6:
        p = get(kind % 5000 + 32);
        do_free(p + 8);
        if (do_realloc(p + 16, 64) != NULL)
            _exit(3);
        do_free(p);
    }
}

/* All of these wrong calls are seen at once, so no block may suffer. */
static void *work_with_errors(void *unused)
{
    unsigned char *slots[SLOTS] = {NULL};
    size_t sizes[SLOTS] = {0};
    uint64_t random = (uintptr_t)&slots;
    for (unsigned i = 0; i < TURNS; i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        unsigned slot = (unsigned)(random >> 40) % SLOTS;
        unsigned char mark = (unsigned char)(random >> 32 | 1);
        for (size_t j = 0; j < sizes[slot]; j++)
            if (slots[slot][j] != slots[slot][0]) {
                say("a block has changed\n");
                _exit(3);
            }
        do_free(slots[slot]);
        sizes[slot] = (random >> 20) % (i % 100 == 0 ? 200000 : 1000) + 1;
        pthread_rwlock_rdlock(&taking);
        slots[slot] = get(sizes[slot]);
        pthread_rwlock_unlock(&taking);
        memset(slots[slot], mark, sizes[slot]);
        if (i % 20 == 0) {
            pthread_rwlock_wrlock(&taking);
            some_wrong_call((unsigned)(random >> 33));
            pthread_rwlock_unlock(&taking);
        }
    }
    for (unsigned i = 0; i < SLOTS; i++)
        do_free(slots[i]);
    return unused;
}

CASE(among_right_calls)
{
    static pthread_t threads[THREADS];
    for (size_t i = 0; i < n; i++)
        start_thread(&threads[i], work_with_errors, 0);
    for (size_t i = 0; i < n; i++)
        pthread_join(threads[i], NULL);
}

/* ---- deep ---- */

CASE(deep)
{
    if (n > 0)
        deep(n - 1);
    else
        wrong_free(of_the_program);
}

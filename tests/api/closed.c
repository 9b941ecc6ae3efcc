/* hakmem_check_frees: every call of every thread takes the slow path, also of threads that would
 * not by themselves, and each wrong free is reported by the free itself. */
#include "check.h"

#include <hakmem/hakmem.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#define THREADS 4
#define TOGGLES 40

/* What free leaves in a block to know it again is overwritten. */
static void free_unsealed(void)
{
    char *p = do_malloc(100), *other = do_malloc(100);
    do_free(p);
    do_free(other);
    memset(p, 0, 100);
    do_free(p);
}

static void free_inside(void)
{
    char *p = do_malloc(1000);
    do_free(p + 16);
}

/* How a child ends whose next step after the misuse is exit status 7. */
static int end_of(void (*misuse)(void), bool checked)
{
    pid_t pid = fork();
    if (pid == 0) {
        if (checked)
            hakmem_check_frees(1);
        close(STDERR_FILENO);
        misuse();
        _exit(7);
    }
    int status = 0;
    waitpid(pid, &status, 0);
    return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

static void wrong_frees_are_seen_at_once(void)
{
    CHECK_SIZE("a block freed twice after its seal was lost, unchecked",
               (size_t)end_of(free_unsealed, false), 7);
    CHECK_SIZE("the same, checked", (size_t)-end_of(free_unsealed, true), SIGABRT);
    CHECK_SIZE("a free inside a block, checked", (size_t)-end_of(free_inside, true), SIGABRT);
}

static atomic_bool stop;
static _Atomic size_t turns[THREADS];

/* One block of a size at a time: the stack neither empties nor fills. */
static void *pairs(void *number)
{
    size_t size = 64 + 16 * (size_t)number;
    for (unsigned i = 0; !stop; i++) {
        unsigned char *p = do_malloc(size);
        memset(p, (int)(i & 255), size);
        if (p[0] != (i & 255) || p[size - 1] != (i & 255))
            CHECK(false, "thread %zu: a block's content changed", (size_t)number);
        do_free(p);
        turns[(size_t)number]++;
    }
    return NULL;
}

static size_t in_caches(void)
{
    struct hakmem_stats stats;
    hakmem_stats(&stats, sizeof stats);
    return stats.thread_caches;
}

/* Of each thread. */
static void wait_for_turns(size_t more)
{
    for (size_t i = 0; i < THREADS; i++)
        for (size_t until = turns[i] + more; turns[i] < until;)
            usleep(100);
}

static void threads_in_tight_loops_are_reached(void)
{
    pthread_t threads[THREADS];
    for (size_t i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, pairs, (void *)i);
    for (int i = 0; i < TOGGLES; i++) {
        wait_for_turns(500);
        CHECK(hakmem_check_frees(1) == 0, "hakmem_check_frees(1): expected that it was off");
        wait_for_turns(2);
        CHECK(hakmem_check_frees(1) == 1, "hakmem_check_frees(1): expected that it was on");
        CHECK_SIZE("bytes in caches while they are closed", in_caches(), 0);
        CHECK(hakmem_check_frees(0) == 1, "hakmem_check_frees(0): expected that it was on");
    }
    wait_for_turns(500);
    stop = true;
    for (size_t i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    CHECK_SIZE("hakmem_check", (size_t)hakmem_check(), 0);
}

int main(void)
{
    check_start("closed");
    RUN(wrong_frees_are_seen_at_once);
    RUN(threads_in_tight_loops_are_reached);
    return check_end();
}

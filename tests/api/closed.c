/* hakmem_check_frees: every call of every thread takes the slow path, also of threads that would
 * not by themselves, and each wrong free is reported by the free itself. */
#include "check.h"
#include "stats.h"

#include <stdatomic.h>
#include <unistd.h>

#define THREADS 4
#define TOGGLES 40

/* What free leaves in a block to know it again is overwritten. */
static void free_unsealed(void *unused)
{
    (void)unused;
    char *p = do_malloc(100), *other = do_malloc(100);
    do_free(p);
    do_free(other);
    memset(p, 0, 100);
    do_free(p);
}

static void free_unsealed_checked(void *unused)
{
    hakmem_check_frees(1);
    free_unsealed(unused);
}

static void free_inside(void *unused)
{
    (void)unused;
    hakmem_check_frees(1);
    do_free((char *)do_malloc(1000) + 16);
}

TEST(wrong_frees_are_seen_at_once)
{
    CHECK_SIZE("a block freed twice after its seal was lost, unchecked",
               (size_t)child_end(free_unsealed, NULL).status, 0);
    CHECK_ABORTS(free_unsealed_checked, NULL, "");
    CHECK_ABORTS(free_inside, NULL, "");
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

/* Of each thread. */
static void wait_for_turns(size_t more)
{
    for (size_t i = 0; i < THREADS; i++)
        for (size_t until = turns[i] + more; turns[i] < until;)
            usleep(100);
}

TEST(threads_in_tight_loops_are_reached)
{
    pthread_t threads[THREADS];
    threads_start(threads, THREADS, pairs);
    for (int i = 0; i < TOGGLES; i++) {
        wait_for_turns(500);
        CHECK(hakmem_check_frees(1) == 0, "hakmem_check_frees(1): expected that it was off");
        wait_for_turns(2);
        CHECK(hakmem_check_frees(1) == 1, "hakmem_check_frees(1): expected that it was on");
        CHECK_SIZE("bytes in caches while they are closed", stats_now().thread_caches, 0);
        CHECK(hakmem_check_frees(0) == 1, "hakmem_check_frees(0): expected that it was on");
    }
    wait_for_turns(500);
    stop = true;
    threads_join(threads, THREADS);
    CHECK_SIZE("hakmem_check", (size_t)hakmem_check(), 0);
}

int main(void) { return tests_main("closed"); }

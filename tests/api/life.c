/* The edges of a process and of its threads: allocation before main and after it, threads whose
 * first call is free, blocks that outlive their thread, a stream of blocks from thread to thread
 * (traps 21, 30, 31, 34, 37). */
#include "check.h"

#include <sched.h>
#include <unistd.h>

static void *made_early[64];
static void *made_in_main[64];

__attribute__((constructor(101))) static void before_main(void)
{
    for (unsigned i = 0; i < 64; i++) {
        made_early[i] = do_malloc(i * i * 40);
        if (made_early[i] == NULL)
            _exit(1);
        pattern_fill(made_early[i], i * i * 40, i);
    }
    do_free(made_early[63]);
    made_early[63] = NULL;
}

/* Whatever runs after main cannot change its result by check_end any more. */
static void after_main(void)
{
    check_test = "after_main";
    for (unsigned i = 0; i < 64; i++) {
        CHECK_PATTERN(made_in_main[i], i * 3000, i);
        do_free(made_in_main[i]);
        void *p = do_malloc(i * 1000);
        if (!CHECK(p != NULL, "malloc after main gave NULL"))
            _exit(1);
        memset(p, 1, i * 1000);
        do_free(p);
    }
    if (!check_all_passed())
        _exit(1);
}

__attribute__((destructor(101))) static void at_the_very_end(void)
{
    for (unsigned i = 0; i < 32; i++) {
        CHECK_PATTERN(made_early[i], i * i * 40, i);
        do_free(made_early[i]);
    }
    do_free(do_malloc(100));
    if (!check_all_passed())
        _exit(1);
}

TEST(blocks_from_before_main)
{
    for (unsigned i = 32; i < 63; i++) {
        CHECK_PATTERN(made_early[i], i * i * 40, i);
        made_early[i] = NEED("realloc", do_realloc(made_early[i], i * i * 40 + 5000));
        CHECK_PATTERN(made_early[i], i * i * 40, i);
        do_free(made_early[i]);
    }
}

static void *only_free(void *block)
{
    do_free(block);
    return NULL;
}

static void *only_realloc(void *block)
{
    void *p = NEED("realloc", do_realloc(block, 50));
    CHECK_PATTERN(p, 30, 8);
    do_free(p);
    return NULL;
}

static void *only_usable_size(void *block)
{
    CHECK(do_usable_size(block) >= 30, "usable size in another thread: expected at least 30");
    return NULL;
}

TEST(first_call_of_a_thread)
{
    static const size_t sizes[] = {1, 64, 5000, 32768, 200000, 5000000};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        in_thread(only_free, NEED("malloc", do_malloc(sizes[i])));
    in_thread(only_free, NULL);
    void *p = NEED("malloc", do_malloc(30));
    pattern_fill(p, 30, 8);
    in_thread(only_usable_size, p);
    in_thread(only_realloc, p);
}

enum { LEFT = 5000 };
static void *left[LEFT];

static size_t size_left(unsigned i) { return i % 100 == 0 ? i * 50 + 1 : i % 1500 + 1; }

static void *make_and_end(void *unused)
{
    for (unsigned i = 0; i < LEFT; i++) {
        left[i] = NEED("malloc", do_malloc(size_left(i)));
        pattern_fill(left[i], size_left(i), i);
    }
    return unused;
}

static void *free_and_end(void *unused)
{
    for (unsigned i = 0; i < LEFT; i++) {
        CHECK_PATTERN(left[i], size_left(i), i);
        do_free(left[i]);
    }
    return unused;
}

TEST(blocks_outlive_their_thread)
{
    for (int i = 0; i < 20; i++) {
        in_thread(make_and_end, NULL);
        if (i % 2 == 0)
            free_and_end(NULL);
        else
            in_thread(free_and_end, NULL);
    }
}

/* One thread allocates, the other frees, through a ring of places. */
enum { RING = 1024, PASSED = 300000 };
static void *ring[RING];

static void *take_and_free(void *unused)
{
    for (unsigned i = 0; i < PASSED; i++) {
        void *p;
        while ((p = __atomic_exchange_n(&ring[i % RING], NULL, __ATOMIC_ACQUIRE)) == NULL)
            sched_yield();
        CHECK_PATTERN(p, i % 300 + 1, i);
        do_free(p);
    }
    return unused;
}

TEST(stream_from_thread_to_thread)
{
    pthread_t thread = started(take_and_free, NULL);
    for (unsigned i = 0; i < PASSED; i++) {
        void *p = NEED("malloc", do_malloc(i % 300 + 1));
        pattern_fill(p, i % 300 + 1, i);
        while (__atomic_load_n(&ring[i % RING], __ATOMIC_RELAXED) != NULL)
            sched_yield();
        __atomic_store_n(&ring[i % RING], p, __ATOMIC_RELEASE);
    }
    pthread_join(thread, NULL);
}

int main(void)
{
    check_start("life");
    tests_run();
    for (unsigned i = 0; i < 64; i++) {
        made_in_main[i] = NEED("malloc", do_malloc(i * 3000));
        pattern_fill(made_in_main[i], i * 3000, i);
    }
    CHECK(atexit(after_main) == 0, "atexit failed");
    return check_end();
}

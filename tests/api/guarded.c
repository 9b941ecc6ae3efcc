/* Sampled guards: guarded blocks serve as any others do. The test sets HAKMEM_GUARDS_A_SECOND to
 * 1000. What a wrong access does is in ../misuse. */
#include "check.h"

#include <hakmem/hakmem.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define TRIES ((size_t)1 << 24)
#define PLACES 256

/* Guarded blocks have exactly the bytes requested, others a multiple of 16. */
static bool is_guarded(void *p, size_t n) { return n % 16 != 0 && do_usable_size(p) == n; }

/* In a process of one thread only that looks at the time, which is to pass. */
static void slow_path(void)
{
    usleep(1000);
    do_free(NEED("malloc", do_malloc(3 * MiB)));
}

/* Of an odd number of bytes. */
static unsigned char *guarded_malloc(size_t n)
{
    for (size_t i = 0; i < TRIES; i++) {
        unsigned char *p = NEED("malloc", do_malloc(n));
        if (is_guarded(p, n))
            return p;
        do_free(p);
        if (i % 1000 == 999)
            slow_path();
    }
    CHECK(false, "no guarded block in %zu calls", TRIES);
    return NEED("malloc", do_malloc(n));
}

TEST(content_stays)
{
    static unsigned char *blocks[64];
    for (size_t i = 0; i < 64; i++) {
        blocks[i] = guarded_malloc(2 * i + 1);
        CHECK_ALIGNED(blocks[i], 16);
        pattern_fill(blocks[i], 2 * i + 1, (unsigned)i);
    }
    for (size_t i = 0; i < 64; i++) {
        CHECK_PATTERN(blocks[i], 2 * i + 1, (unsigned)i);
        do_free(blocks[i]);
    }
}

TEST(up_to_a_page)
{
    static const size_t sizes[] = {1, 15, 17, 33, 1001, 4001, 4095};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        unsigned char *p = guarded_malloc(sizes[i]);
        CHECK_ALIGNED(p, 16);
        pattern_fill(p, sizes[i], 3);
        CHECK_PATTERN(p, sizes[i], 3);
        do_free(p);
    }
}

/* A block of no bytes has as many as it says. */
TEST(malloc_of_no_bytes)
{
    size_t found = 0;
    for (size_t i = 0; i < 100000 && found < 20; i++) {
        unsigned char *p = NEED("malloc", do_malloc(0));
        size_t usable = do_usable_size(p);
        found += usable == 1;
        memset(p, 1, usable);
        do_free(p);
        if (i % 1000 == 999)
            slow_path();
    }
}

TEST(calloc_is_zero)
{
    size_t found = 0;
    for (size_t i = 0; i < TRIES && found < 20; i++) {
        unsigned char *p = NEED("calloc", do_calloc(1, 77));
        if (is_guarded(p, 77)) {
            CHECK_BYTES(p, 0, 77);
            found++;
        }
        memset(p, 1, 77);
        do_free(p);
        if (i % 1000 == 999)
            slow_path();
    }
    CHECK_SIZE("guarded blocks of calloc", found, 20);
}

TEST(realloc_keeps_content)
{
    static const size_t sizes[] = {1, 50, 51, 53, 3000, 100000, 3000000};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        unsigned char *p = guarded_malloc(51);
        pattern_fill(p, 51, 9);
        p = NEED("realloc", do_realloc(p, sizes[i]));
        CHECK_PATTERN(p, sizes[i] < 51 ? sizes[i] : 51, 9);
        do_free(p);
    }
    CHECK_NULL("realloc to 0 bytes", do_realloc(guarded_malloc(51), 0));
}

/* As many as there are places; after that malloc goes on, and when they are free again so do
 * guarded blocks. */
TEST(places_fill_up_and_empty)
{
    static unsigned char *blocks[PLACES / 2];
    for (unsigned round = 0; round < 2; round++) {
        for (size_t i = 0; i < PLACES / 2; i++)
            blocks[i] = guarded_malloc(101);
        for (size_t i = 0; i < PLACES / 2; i++)
            do_free(blocks[i]);
    }
}

TEST(memory_goes_back)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    unsigned char *p = guarded_malloc(101);
    void *start = (void *)((uintptr_t)p & ~(page - 1));
    unsigned char present = 0;
    do_free(p);
    CHECK_ERROR("mincore", mincore(start, page, &present) == 0 ? 0 : errno, 0);
    CHECK((present & 1) == 0, "the page of a freed block is in memory");
}

static void *free_it(void *p)
{
    CHECK_PATTERN(p, 201, 5);
    do_free(p);
    return NULL;
}

TEST(other_threads_free)
{
    for (unsigned i = 0; i < 10; i++) {
        unsigned char *p = guarded_malloc(201);
        pattern_fill(p, 201, 5);
        in_thread(free_it, p);
    }
}

static void *churn(void *number)
{
    static _Atomic(unsigned char *) shared[64];
    unsigned seed = (unsigned)(uintptr_t)number;
    for (unsigned i = 0; i < 200000; i++) {
        size_t n = 1 + (unsigned)rand_r(&seed) % 500;
        unsigned char *p = NEED("malloc", do_malloc(n));
        memset(p, 1, n);
        do_free(__atomic_exchange_n((unsigned char **)&shared[i % 64], p, __ATOMIC_ACQ_REL));
    }
    for (unsigned i = 0; i < 64; i++)
        do_free(__atomic_exchange_n((unsigned char **)&shared[i], NULL, __ATOMIC_ACQ_REL));
    return NULL;
}

TEST(threads_hand_them_on) { in_threads(4, churn); }

static unsigned char *of_parent;

static void free_and_take(void)
{
    CHECK_PATTERN(of_parent, 301, 7);
    do_free(of_parent);
    do_free(guarded_malloc(301));
}

TEST(a_child_has_its_own)
{
    for (unsigned i = 0; i < 10; i++) {
        of_parent = guarded_malloc(301);
        pattern_fill(of_parent, 301, 7);
        in_child(free_and_take);
        CHECK_PATTERN(of_parent, 301, 7);
        do_free(of_parent);
    }
}

TEST(switched_while_it_runs)
{
    unsigned char *p = guarded_malloc(401);
    CHECK_ERROR("off", hakmem_option_set("guards_a_second", 0), 0);
    for (unsigned i = 0; i < 100000; i++) {
        unsigned char *q = NEED("malloc", do_malloc(401));
        CHECK(!is_guarded(q, 401), "a guarded block while there are to be none");
        do_free(q);
    }
    do_free(p);
    CHECK_ERROR("on", hakmem_option_set("guards_a_second", 1000), 0);
    do_free(guarded_malloc(401));
    CHECK_ERROR("a profile too", hakmem_profile_start(), 0);
    do_free(guarded_malloc(401));
    CHECK_ERROR("a profile no more", hakmem_profile_stop(), 0);
    do_free(guarded_malloc(401));
}

TEST(the_heap_is_sound)
{
    struct hakmem_stats stats = {0};
    unsigned char *p = guarded_malloc(501);
    hakmem_stats(&stats, sizeof stats);
    CHECK(hakmem_check() == 0, "the heap check found an error");
    do_free(p);
}

int main(void) { return tests_main("guarded"); }

/* A hardened heap (docs/security.md), where its promises differ from those of any heap. What it
 * finds is in ../misuse. */
#include "check.h"
#include "stats.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <unistd.h>

/* ---- zeros ---- */

/* Freed, and taken again soon: a block of each kind of place. */
TEST(reused_blocks_hold_zeroes)
{
    for (size_t n = 8; n <= 4 * MiB; n = n * 5 / 4 + 8)
        for (int i = 0; i < 20; i++) {
            unsigned char *p = NEED("malloc", do_malloc(n));
            if (!CHECK_BYTES(p, 0, n))
                break;
            memset(p, 0xa5, n);
            do_free(p);
        }
}

/* ---- blocks of 33 to 128 KiB: the first that are freed go back to the kernel, others are zeroed
 * ---- */

enum { KEPT = 40, ROUNDS = 4000, FREED = 300 };

static size_t any_size(size_t round) { return 33 * KiB + round * 7919 % (95 * KiB); }

static bool readable(const char *p)
{
    char byte;
    struct iovec to = {&byte, 1}, from = {(void *)(uintptr_t)p, 1};
    return process_vm_readv(getpid(), &to, 1, &from, 1, 0) == 1;
}

TEST_FIRST(the_first_is_out_of_reach)
{
    char *p = NEED("malloc", do_malloc(40 * KiB));
    CHECK(readable(p), "a block can't be read");
    do_free(p);
    CHECK(!readable(p) || getenv("HAKMEM_GUARDS") != NULL, "a freed block can be read");
}

TEST(blocks_that_keep_their_pages)
{
    static unsigned char *blocks[KEPT];
    static size_t sizes[KEPT];
    for (size_t round = 0; round < ROUNDS; round++) {
        size_t at = round * 31 % KEPT, n = any_size(round);
        if (blocks[at] != NULL)
            CHECK_BYTES(blocks[at], 0x5a, sizes[at]);
        if (round % 3 == 2) {
            blocks[at] = NEED("realloc", do_realloc(blocks[at], n));
        } else {
            do_free(blocks[at]);
            blocks[at] = NEED("malloc", do_malloc(n));
            if (!CHECK_BYTES(blocks[at], 0, n))
                return;
        }
        memset(blocks[at], 0x5a, n);
        sizes[at] = n;
        if (round % 1000 == 999)
            CHECK_SIZE("breaches of the heap", (size_t)hakmem_check(), 0);
        if (round == ROUNDS / 2)
            malloc_trim(0);
    }
    for (size_t at = 0; at < KEPT; at++)
        do_free(blocks[at]);
    CHECK_SIZE("breaches of the heap", (size_t)hakmem_check(), 0);
}

/* One that was freed and keeps its pages; null where none does, as without marks of the kernel. As
 * many blocks stay in use, so that the thread does not come to rest and empty its stacks. */
static volatile char *free_with_pages(void)
{
    static char *freed[FREED];
    for (size_t i = 0; i < FREED; i++)
        NEED("malloc", do_malloc(40 * KiB));
    for (size_t i = 0; i < FREED; i++)
        freed[i] = do_malloc(40 * KiB);
    for (size_t i = 0; i < FREED; i++)
        do_free(freed[i]);
    size_t i = 0;
    while (i < FREED && !readable(freed[i]))
        i++;
    return i < FREED ? freed[i] : NULL;
}

/* For a child that is to end by a report; it does so where there is none, too. */
static volatile char *need_one_with_pages(void)
{
    volatile char *p = free_with_pages();
    if (p == NULL) {
        fputs("hakmem: not said, as no freed block keeps its pages\n", stderr);
        abort();
    }
    return p;
}

static void write_to_a_free_block(size_t at)
{
    volatile char *p = need_one_with_pages();
    CHECK(p[at] == 0, "a freed block holds %d", p[at]);
    p[at] = 1;
}

static void write_and_take_it_again(void *unused)
{
    (void)unused;
    write_to_a_free_block(40 * KiB - 1);
    for (size_t i = 0; i < FREED; i++)
        do_malloc(40 * KiB);
}

static void write_and_exit(void *unused)
{
    (void)unused;
    write_to_a_free_block(0);
    exit(0);
}

static void write_and_trim(void *unused)
{
    (void)unused;
    write_to_a_free_block(5000);
    malloc_trim(0);
    exit(0);
}

/* The kernel makes no page of locked memory a guard. */
static void lock_and_shrink(void)
{
    if (mlockall(MCL_CURRENT | MCL_FUTURE) != 0)
        return;
    for (int i = 0; i < 200; i++) {
        char *p = NEED("malloc", do_malloc(128 * KiB));
        memset(p, 0xa5, 128 * KiB);
        do_free(NEED("realloc", do_realloc(p, 70 * KiB)));
        p = NEED("calloc", do_calloc(1, 128 * KiB));
        CHECK_BYTES(p, 0, 128 * KiB);
        do_free(p);
    }
    CHECK_SIZE("breaches of the heap", (size_t)hakmem_check(), 0);
}

static void trim(void)
{
    volatile char *p = free_with_pages();
    malloc_trim(0);
    CHECK(p == NULL || !readable((char *)p), "after malloc_trim a freed block can be read");
}

static void free_twice(void *unused)
{
    (void)unused;
    do_free((void *)need_one_with_pages());
}

TEST(misuse_of_those)
{
    if (getenv("HAKMEM_GUARDS") != NULL)
        return;
    CHECK_ABORTS(write_and_take_it_again, NULL, "");
    CHECK_ABORTS(write_and_exit, NULL, "");
    CHECK_ABORTS(write_and_trim, NULL, "");
    CHECK_ABORTS(free_twice, NULL, "");
    in_child(lock_and_shrink);
    in_child(trim);
}

/* More blocks between guards than the kernel has mappings for (65,530 by default). */
TEST(more_blocks_than_mappings)
{
    enum { MANY = 40000, MORE = 20000 };
    static char *blocks[MANY + MORE];
    for (size_t i = 0; i < MANY + MORE; i++)
        if ((blocks[i] = do_malloc(i < MANY ? 100 * KiB : 150 * KiB)) == NULL) {
            CHECK(false, "malloc failed for block %zu: %s", i, error_name(errno));
            break;
        }
    for (size_t i = 0; i < MANY + MORE; i++)
        do_free(blocks[i]);
    CHECK_SIZE("breaches of the heap", (size_t)hakmem_check(), 0);
}

/* ---- sizes ---- */

/* To every size about half of what a block has, where realloc leaves those of other heaps. */
TEST(sizes_after_realloc_fit)
{
    for (size_t n = 20; n <= 40000; n = n * 9 / 8 + 1) {
        void *p = NEED("malloc", do_malloc(n));
        size_t half = do_usable_size(p) / 2;
        do_free(p);
        for (size_t to = half - 8; to < half + 9; to++) {
            p = NEED("realloc", do_realloc(do_malloc(n), to));
            hakmem_free_sized(p, to); /* ends the program where it doesn't fit */
        }
    }
}

/* The most that was ever resident, which a child begins anew. */
TEST_IN_CHILD(growing_blocks_are_not_there_twice)
{
    const size_t n = 160 * MiB;
    char *p = NEED("malloc", do_malloc(n));
    memset(p, 0x5a, n);
    p = NEED("realloc", do_realloc(p, n + n / 2));
    CHECK_BYTES(p, 0x5a, n);
    struct rusage usage;
    CHECK(getrusage(RUSAGE_SELF, &usage) == 0, "getrusage failed");
    size_t most = (size_t)usage.ru_maxrss * KiB;
    CHECK(most < n + n / 2, "a block of %zu MiB that grew had %zu MiB resident", n / MiB,
          most / MiB);
    do_free(p);
}

/* Pages of which few were touched move, and with them what nobody can touch around them. */
TEST_IN_CHILD(growing_blocks_stay_sparse)
{
    size_t n = 400 * MiB;
    char *p = NEED("malloc", do_malloc(n));
    memset(p, 0x5a, KiB);
    p[n - 1] = 7;
    for (unsigned i = 0; i < 3; i++) {
        p = NEED("realloc", do_realloc(p, n + n / 4 + 100));
        CHECK_BYTES(p, 0x5a, KiB);
        CHECK(p[n - 1] == 7 && p[n] == 0, "a block's end has changed, or what grew holds no zero");
        n += n / 4;
        p[n - 1] = 7;
        if (getenv("HAKMEM_GUARDS") == NULL)
            CHECK(!readable(p - 1) && !readable(p + malloc_usable_size(p)),
                  "what lies beside a block that grew can be read");
    }
    struct rusage usage;
    CHECK(getrusage(RUSAGE_SELF, &usage) == 0, "getrusage failed");
    size_t most = (size_t)usage.ru_maxrss * KiB;
    CHECK(most < 100 * MiB, "a block of which 4 pages were touched had %zu MiB resident",
          most / MiB);
    do_free(p);
    CHECK(!readable(p) || getenv("HAKMEM_GUARDS") != NULL, "a freed block can be read");
}

/* ---- blocks of no bytes ---- */

/* All different, and taken and freed as others are; more than there are addresses for. */
TEST(blocks_of_no_bytes)
{
    enum { MANY = 70000 };
    static void *blocks[MANY];
    for (size_t i = 0; i < MANY; i++) {
        blocks[i] = NEED("malloc(0)", do_malloc(0));
        CHECK_ALIGNED(blocks[i], 16);
    }
    CHECK(do_usable_size(blocks[0]) <= 8, "usable size of malloc(0): found %zu",
          do_usable_size(blocks[0]));
    CHECK_SIZE("breaches of the heap", (size_t)hakmem_check(), 0);
    for (size_t i = 0; i < MANY; i += 2) {
        blocks[i] = NEED("realloc", do_realloc(blocks[i], 24));
        memset(blocks[i], 1, 24);
    }
    for (size_t i = 1; i < MANY; i += 4)
        CHECK_NULL("realloc to 0", do_realloc(blocks[i], 0));
    for (size_t i = 0; i < MANY; i++)
        if (i % 4 != 1)
            do_free(blocks[i]);
    CHECK_SIZE("breaches of the heap", (size_t)hakmem_check(), 0);
}

static void free_free_one(void *p) { do_free(p); }
static void realloc_free_one(void *p) { do_free(do_realloc(p, 10)); }
static void read_one(void *p) { (void)*(volatile char *)p; }
static void write_one(void *p) { *(volatile char *)p = 1; }

TEST(misuse_of_no_bytes)
{
    int touched = getenv("HAKMEM_GUARDS") == NULL ? SIGSEGV : 0;
    void *p = do_malloc(0);
    CHECK_SIZE("a read", (size_t)child_end(read_one, p).status, (size_t)touched);
    CHECK_SIZE("a write", (size_t)child_end(write_one, p).status, (size_t)touched);
    do_free(p);
    CHECK_ABORTS(free_free_one, p, "");
    CHECK_ABORTS(realloc_free_one, p, "");
}

/* ---- fork ---- */

enum { THREADS = 8, BLOCKS = 200 };
static pthread_barrier_t used, leave;

static void *use_and_wait(void *unused)
{
    void *blocks[BLOCKS];
    for (int round = 0; round < 20; round++) {
        for (size_t i = 0; i < BLOCKS; i++)
            blocks[i] = NEED("malloc", do_malloc(100 + i % 20 * 300));
        for (size_t i = 0; i < BLOCKS; i++)
            do_free(blocks[i]);
    }
    pthread_barrier_wait(&used);
    pthread_barrier_wait(&leave);
    return unused;
}

static void use_what_threads_held(void)
{
    void *blocks[1000];
    size_t before = stats_now().thread_caches;
    for (size_t i = 0; i < 1000; i++)
        blocks[i] = NEED("malloc", do_malloc(100));
    for (size_t i = 0; i < 1000; i++)
        do_free(blocks[i]);
    size_t after = stats_now().thread_caches;
    CHECK(after < before / 2, "the child's caches have %zu bytes of %zu", after, before);
    CHECK_SIZE("breaches of the child's heap", (size_t)hakmem_check(), 0);
}

TEST(blocks_of_threads_that_a_child_lacks)
{
    pthread_t threads[THREADS];
    pthread_barrier_init(&used, NULL, THREADS + 1);
    pthread_barrier_init(&leave, NULL, THREADS + 1);
    threads_start(threads, THREADS, use_and_wait);
    pthread_barrier_wait(&used);
    in_child(use_what_threads_held);
    pthread_barrier_wait(&leave);
    threads_join(threads, THREADS);
}

/* So many that what the parent had chosen before is used up. */
enum { CHOSEN = 500 };
static int to_parent[2];

static void tell_addresses(void)
{
    void *blocks[CHOSEN];
    for (size_t i = 0; i < CHOSEN; i++)
        blocks[i] = do_malloc(200);
    CHECK(write(to_parent[1], blocks, sizeof blocks) == sizeof blocks, "the pipe is full");
}

TEST(children_choose_differently)
{
    static void *told[2][CHOSEN];
    CHECK(pipe(to_parent) == 0, "no pipe");
    for (int i = 0; i < 2; i++) {
        in_child(tell_addresses);
        CHECK(read(to_parent[0], told[i], sizeof told[i]) == sizeof told[i], "a child is silent");
    }
    CHECK(memcmp(told[0], told[1], sizeof told[0]) != 0, "both have the same addresses");
    close(to_parent[0]);
    close(to_parent[1]);
}

int main(void) { return tests_main("hardened"); }

/* What the functions return, and what realloc keeps. */
#include "check.h"

#include <stdlib.h>

#include <sys/resource.h>

TEST(malloc_zero_is_unique)
{
    enum { N = 2000 };
    static void *blocks[N];
    for (int i = 0; i < N; i++) {
        blocks[i] = NEED("malloc(0)", do_malloc(0));
        CHECK_ALIGNED(blocks[i], 16);
        /* In a hardened heap nobody can touch them. */
        CHECK(do_usable_size(blocks[i]) > 0 || getenv("HAKMEM_PRESET") != NULL,
              "usable size of malloc(0): expected more than 0");
    }
    for (int i = 0; i < N; i++)
        for (int k = i + 1; k < N; k++)
            if (blocks[i] == blocks[k])
                CHECK(false, "malloc(0) no. %d and %d: expected two addresses, found %p twice", i,
                      k, blocks[i]);
    for (int i = 0; i < N; i++)
        do_free(blocks[i]);
}

TEST(calloc_of_nothing_is_a_block)
{
    void *a = NEED("calloc(0, 0)", do_calloc(0, 0));
    void *b = NEED("calloc(0, 8)", do_calloc(0, 8));
    void *c = NEED("calloc(8, 0)", do_calloc(8, 0));
    void *d = NEED("calloc(SIZE_MAX, 0)", do_calloc(SIZE_MAX, 0));
    CHECK(a != b && b != c && a != c && c != d && a != d && b != d,
          "expected four addresses, found %p %p %p %p", a, b, c, d);
    do_free(a);
    do_free(b);
    do_free(c);
    do_free(d);
}

TEST(free_null_does_nothing)
{
    errno = 4321;
    do_free(NULL);
    CHECK_ERROR("errno after free(NULL)", errno, 4321);
}

TEST(usable_size_of_null_is_zero)
{
    CHECK_SIZE("malloc_usable_size(NULL)", do_usable_size(NULL), 0);
}

TEST(realloc_null_is_malloc)
{
    for (size_t n = 0; n < 5 * MiB; n = n * 3 + 1) {
        unsigned char *p = NEED("realloc(NULL, n)", do_realloc(NULL, n));
        CHECK_ALIGNED(p, 16);
        pattern_fill(p, n, 1);
        CHECK_PATTERN(p, n, 1);
        do_free(p);
    }
    void *a = NEED("realloc(NULL, 0)", do_realloc(NULL, 0));
    void *b = NEED("realloc(NULL, 0)", do_realloc(NULL, 0));
    CHECK(a != b, "realloc(NULL, 0) twice: expected two addresses, found %p twice", a);
    do_free(a);
    do_free(b);
}

static size_t peak_rss(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (size_t)usage.ru_maxrss * KiB;
}

TEST(realloc_to_zero_frees)
{
    static const size_t sizes[] = {1, 24, 1000, 20000, 64 * KiB, 3 * MiB};
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        /* 600 MiB of touched blocks: if they stayed, resident memory would tell. */
        size_t before = peak_rss(), rounds = 600 * MiB / (sizes[k] < 32 ? 32 : sizes[k]);
        if (rounds > 2000000)
            rounds = 2000000;
        size_t all = rounds * (sizes[k] < 32 ? 32 : sizes[k]);
        for (size_t i = 0; i < rounds; i++) {
            unsigned char *p = NEED("malloc", do_malloc(sizes[k]));
            for (size_t at = 0; at < sizes[k]; at += 4096)
                p[at] = 1;
            errno = 4321;
            void *after = do_realloc(p, 0);
            if (after != NULL || errno != 4321) {
                CHECK_NULL("realloc(p, 0)", after);
                CHECK_ERROR("errno after realloc(p, 0)", errno, 4321);
                return;
            }
        }
        size_t grown = peak_rss() - before;
        CHECK(grown < all / 2 + 16 * MiB,
              "realloc(p, 0) of %zu bytes, %zu times: expected that memory stays, found %zu bytes "
              "more",
              sizes[k], rounds, grown);
    }
}

static const size_t sizes[] = {
    1,      8,      15,      16,      17,      100,     128,     1000,    1024,  4095,
    4096,   4097,   10000,   16384,   30000,   32768,   32769,   50000,   65536, 65537,
    200000, 524288, 1048576, 2097151, 2097152, 2097153, 3000000, 5242880,
};
#define SIZES (sizeof sizes / sizeof *sizes)

TEST(realloc_keeps_content_from_any_size_to_any)
{
    for (size_t i = 0; i < SIZES; i++) {
        for (size_t k = 0; k < SIZES; k++) {
            size_t smaller = sizes[i] < sizes[k] ? sizes[i] : sizes[k];
            void *p = NEED("malloc", do_malloc(sizes[i]));
            pattern_fill(p, sizes[i], (unsigned)k);
            p = NEED("realloc", do_realloc(p, sizes[k]));
            CHECK_ALIGNED(p, 16);
            CHECK_PATTERN(p, smaller, (unsigned)k);
            CHECK(do_usable_size(p) >= sizes[k],
                  "usable size after realloc from %zu: expected at least %zu, found %zu", sizes[i],
                  sizes[k], do_usable_size(p));
            pattern_fill(p, sizes[k], 7);
            CHECK_PATTERN(p, sizes[k], 7);
            do_free(p);
        }
    }
}

TEST(realloc_grows_step_by_step)
{
    static const size_t steps[] = {1, 24, 4099, 300000};
    for (size_t k = 0; k < sizeof steps / sizeof *steps; k++) {
        size_t n = steps[k];
        unsigned char *p = NEED("malloc", do_malloc(n));
        /* A neighbour that must not be run into. */
        unsigned char *other = NEED("malloc", do_malloc(n));
        memset(p, 0x5a, n);
        memset(other, 0x33, n);
        for (int i = 0; i < 600 && n < 24 * MiB; i++) {
            p = NEED("realloc", do_realloc(p, n + steps[k]));
            memset(p + n, 0x5a, steps[k]);
            n += steps[k];
        }
        CHECK_BYTES(p, 0x5a, n);
        CHECK_BYTES(other, 0x33, steps[k]);
        while (n > 2 * steps[k]) {
            n -= n / 3;
            p = NEED("realloc", do_realloc(p, n));
            CHECK_BYTES(p, 0x5a, n);
        }
        do_free(p);
        do_free(other);
    }
}

/* An aligned block may lie inside what was taken for it (trap 5). */
TEST(realloc_keeps_content_of_aligned_blocks)
{
    for (size_t align = 16; align <= 4 * MiB; align *= 4) {
        for (size_t i = 0; i < SIZES; i += 3) {
            size_t to = sizes[(i * 5 + 3) % SIZES];
            size_t smaller = sizes[i] < to ? sizes[i] : to;
            void *p = NEED("memalign", do_memalign(align, sizes[i]));
            pattern_fill(p, sizes[i], 9);
            p = NEED("realloc", do_realloc(p, to));
            CHECK_ALIGNED(p, 16);
            CHECK_PATTERN(p, smaller, 9);
            pattern_fill(p, to, 3);
            CHECK_PATTERN(p, to, 3);
            do_free(p);
        }
    }
}

TEST(all_of_usable_size_is_kept_by_realloc)
{
    for (size_t i = 0; i < SIZES; i++) {
        void *p = NEED("malloc", do_malloc(sizes[i]));
        size_t usable = do_usable_size(p);
        pattern_fill(p, usable, 5);
        p = NEED("realloc", do_realloc(p, usable * 2 + 1));
        CHECK_PATTERN(p, usable, 5);
        do_free(p);
    }
}

int main(void) { return tests_main("values"); }

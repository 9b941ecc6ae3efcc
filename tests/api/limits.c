/* Requests that can't be served: null or an error code, errno as documented, blocks unchanged. */
#include "check.h"

static const size_t too_large[] = {
    SIZE_MAX,
    SIZE_MAX - 1,
    SIZE_MAX - 15,
    SIZE_MAX - 16,
    SIZE_MAX - 4095,
    SIZE_MAX - 4096,
    SIZE_MAX - 65536,
    SIZE_MAX - 4 * MiB,
    (size_t)PTRDIFF_MAX + 1,
    (size_t)PTRDIFF_MAX + 2,
    (size_t)PTRDIFF_MAX + 4097,
    /* These are within the bound, but no machine has them. */
    (size_t)PTRDIFF_MAX,
    (size_t)PTRDIFF_MAX - 4095,
    (size_t)1 << 62,
    (size_t)1 << 57,
};
#define TOO_LARGE (sizeof too_large / sizeof *too_large)

static void no_block(const char *what, size_t n, void *p)
{
    int error = errno;
    if (!CHECK(p == NULL, "%s, n = %zu: expected NULL, found %p", what, n, p))
        return;
    CHECK(error == ENOMEM, "%s, n = %zu: errno: expected %d (ENOMEM), found %d (%s)", what, n,
          ENOMEM, error, error_name(error));
}

TEST(malloc_of_too_much)
{
    for (size_t i = 0; i < TOO_LARGE; i++) {
        errno = 0;
        no_block("malloc(n)", too_large[i], do_malloc(too_large[i]));
    }
}

TEST(calloc_of_too_much)
{
    for (size_t i = 0; i < TOO_LARGE; i++) {
        errno = 0;
        no_block("calloc(1, n)", too_large[i], do_calloc(1, too_large[i]));
        errno = 0;
        no_block("calloc(n, 1)", too_large[i], do_calloc(too_large[i], 1));
        errno = 0;
        no_block("calloc(n, n)", too_large[i], do_calloc(too_large[i], too_large[i]));
        errno = 0;
        no_block("calloc(n, 2)", too_large[i], do_calloc(too_large[i], 2));
    }
}

/* Products that wrap to something small. */
TEST(calloc_overflow)
{
    static const size_t products[][2] = {
        {(size_t)1 << 32, (size_t)1 << 32},
        {((size_t)1 << 32) + 1, (size_t)1 << 32},
        {SIZE_MAX / 2 + 1, 2},
        {SIZE_MAX / 4 + 2, 4},
        {SIZE_MAX / 16 + 2, 16},
        {SIZE_MAX / 24 + 1, 24},
        {24, SIZE_MAX / 24 + 1},
        {SIZE_MAX, SIZE_MAX},
    };
    for (size_t i = 0; i < sizeof products / sizeof *products; i++) {
        errno = 0;
        no_block("calloc with an overflow", products[i][0],
                 do_calloc(products[i][0], products[i][1]));
    }
}

TEST(realloc_of_too_much_leaves_the_block)
{
    static const size_t sizes[] = {1, 64, 1000, 32768, 100000, 1048576, 5000000};
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        void *p = NEED("malloc", do_malloc(sizes[k]));
        pattern_fill(p, sizes[k], (unsigned)k);
        for (size_t i = 0; i < TOO_LARGE; i++) {
            errno = 0;
            no_block("realloc(p, n)", too_large[i], do_realloc(p, too_large[i]));
            CHECK_PATTERN(p, sizes[k], (unsigned)k);
        }
        CHECK(do_usable_size(p) >= sizes[k], "usable size: expected at least %zu, found %zu",
              sizes[k], do_usable_size(p));
        p = NEED("realloc", do_realloc(p, sizes[k] * 2));
        CHECK_PATTERN(p, sizes[k], (unsigned)k);
        do_free(p);
    }
    for (size_t i = 0; i < TOO_LARGE; i++) {
        errno = 0;
        no_block("realloc(NULL, n)", too_large[i], do_realloc(NULL, too_large[i]));
    }
}

TEST(aligned_of_too_much)
{
    static const size_t alignments[] = {8, 16, 64, 4096, 65536, 4 * MiB, (size_t)1 << 40};
    void *const untouched = &errno;
    for (size_t k = 0; k < sizeof alignments / sizeof *alignments; k++) {
        for (size_t i = 0; i < TOO_LARGE; i++) {
            size_t n = too_large[i];
            errno = 0;
            no_block("aligned_alloc(align, n)", n, do_aligned_alloc(alignments[k], n));
            errno = 0;
            no_block("memalign(align, n)", n, do_memalign(alignments[k], n));
            void *p = untouched;
            errno = 4321;
            int error = do_posix_memalign(&p, alignments[k], n);
            CHECK_ERROR("posix_memalign of too much", error, ENOMEM);
            CHECK_ERROR("errno after posix_memalign", errno, ENOMEM);
            CHECK(p == untouched, "*memptr after posix_memalign failed: expected %p, found %p",
                  untouched, p);
        }
    }
}

TEST(alignments_of_too_much)
{
    for (size_t align = (size_t)1 << 57; align != 0; align <<= 1) {
        void *const untouched = &errno;
        void *p = untouched;
        errno = 0;
        no_block("aligned_alloc(n, 16)", align, do_aligned_alloc(align, 16));
        errno = 0;
        no_block("memalign(n, 16)", align, do_memalign(align, 16));
        errno = 4321;
        CHECK_ERROR("posix_memalign", do_posix_memalign(&p, align, 16), ENOMEM);
        CHECK_ERROR("errno after posix_memalign", errno, ENOMEM);
        CHECK(p == untouched, "*memptr: expected %p, found %p", untouched, p);
    }
    /* No power of two lies above. */
    errno = 0;
    CHECK_NULL("memalign(SIZE_MAX, 16)", do_memalign(SIZE_MAX, 16));
    CHECK(errno == EINVAL || errno == ENOMEM, "errno: expected EINVAL or ENOMEM, found %d", errno);
}

#ifndef STRESS_HAKMEM_NAMES
static void *(*volatile do_reallocarray)(void *, size_t, size_t) = reallocarray;

TEST(reallocarray_overflow_leaves_the_block)
{
    void *p = NEED("malloc", do_malloc(100));
    pattern_fill(p, 100, 1);
    errno = 0;
    no_block("reallocarray with an overflow", SIZE_MAX / 8 + 2,
             do_reallocarray(p, SIZE_MAX / 8 + 2, 8));
    CHECK_PATTERN(p, 100, 1);
    p = NEED("reallocarray", do_reallocarray(p, 50, 8));
    CHECK_PATTERN(p, 100, 1);
    do_free(p);
}
#endif

int main(void) { return tests_main("limits"); }

/* posix_memalign, aligned_alloc and memalign: alignments from 1 to 64 MiB, and wrong alignments. */
#include "check.h"

static void good_block(void *p, size_t align, size_t n)
{
    CHECK_ALIGNED(p, align);
    CHECK_ALIGNED(p, 16);
    CHECK(do_usable_size(p) >= n, "usable size at alignment %zu: expected at least %zu, found %zu",
          align, n, do_usable_size(p));
}

/* Several at once, so that they would overlap if they could. */
TEST(every_alignment)
{
    for (size_t align = 1; align <= 64 * MiB; align *= 2) {
        const size_t sizes[] = {
            0,    1,     7,      16,           100, align - 1, align, align + 1, align * 2 - 1,
            5000, 40000, 300000, align / 2 + 3};
        enum { N = sizeof sizes / sizeof *sizes };
        void *blocks[3][N];
        for (unsigned i = 0; i < N; i++) {
            blocks[0][i] = NEED("aligned_alloc", do_aligned_alloc(align, sizes[i]));
            blocks[1][i] = NEED("memalign", do_memalign(align, sizes[i]));
            blocks[2][i] = NULL;
            size_t least = align < sizeof(void *) ? sizeof(void *) : align;
            CHECK_ERROR("posix_memalign", do_posix_memalign(&blocks[2][i], least, sizes[i]), 0);
            NEED("posix_memalign", blocks[2][i]);
            for (unsigned k = 0; k < 3; k++) {
                good_block(blocks[k][i], align, sizes[i]);
                pattern_fill(blocks[k][i], sizes[i] < MiB ? sizes[i] : MiB, i * 3 + k);
            }
        }
        for (unsigned i = 0; i < N; i++) {
            for (unsigned k = 0; k < 3; k++) {
                CHECK_PATTERN(blocks[k][i], sizes[i] < MiB ? sizes[i] : MiB, i * 3 + k);
                do_free(blocks[k][i]);
            }
        }
    }
}

/* The whole usable size of an aligned block is the program's. */
TEST(usable_size_of_aligned_blocks)
{
    for (size_t align = 16; align <= 2 * MiB; align *= 2) {
        void *p = NEED("memalign", do_memalign(align, align + 24));
        void *q = NEED("memalign", do_memalign(align, 24));
        size_t p_usable = do_usable_size(p), q_usable = do_usable_size(q);
        pattern_fill(p, p_usable, 1);
        pattern_fill(q, q_usable, 2);
        CHECK_PATTERN(p, p_usable, 1);
        CHECK_PATTERN(q, q_usable, 2);
        do_free(p);
        do_free(q);
    }
}

/* Many of one kind: slabs and runs fill up, blocks are reused. */
TEST(many_aligned_blocks)
{
    enum { N = 300 };
    static void *blocks[N];
    for (size_t align = 32; align <= 64 * KiB; align *= 2) {
        for (unsigned round = 0; round < 3; round++) {
            for (unsigned i = 0; i < N; i++) {
                size_t n = i * 37 % (align + 100) + 1;
                blocks[i] = NEED("aligned_alloc", do_aligned_alloc(align, n));
                CHECK_ALIGNED(blocks[i], align);
                pattern_fill(blocks[i], n, i);
            }
            for (unsigned i = 0; i < N; i++) {
                size_t n = i * 37 % (align + 100) + 1;
                CHECK_PATTERN(blocks[i], n, i);
                do_free(blocks[i]);
            }
        }
    }
}

TEST(posix_memalign_refuses)
{
    static const size_t bad[] = {
        0,  1,  2,   3,    4,    7,     9,        12,           24,
        40, 48, 100, 4095, 4097, 12288, SIZE_MAX, SIZE_MAX - 7, ((size_t)1 << 63) + 8};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        void *const untouched = &errno;
        void *p = untouched;
        errno = 4321;
        int error = do_posix_memalign(&p, bad[i], 100);
        CHECK(error == EINVAL, "posix_memalign, alignment %zu: expected %d (EINVAL), found %d",
              bad[i], EINVAL, error);
        CHECK_ERROR("errno after posix_memalign", errno, 4321);
        CHECK(p == untouched, "*memptr, alignment %zu: expected %p, found %p", bad[i], untouched,
              p);
    }
}

TEST(aligned_alloc_refuses)
{
    if (check_any_malloc())
        return; /* older versions of glibc take any alignment here */
    static const size_t bad[] = {0, 3, 6, 12, 24, 48, 100, 4095, 4097, 12288, SIZE_MAX};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        errno = 0;
        void *p = do_aligned_alloc(bad[i], 96);
        CHECK(p == NULL, "aligned_alloc(%zu, 96): expected NULL, found %p", bad[i], p);
        CHECK(errno == EINVAL, "aligned_alloc(%zu, 96): errno: expected %d (EINVAL), found %d",
              bad[i], EINVAL, errno);
    }
}

/* It rounds the alignment up (trap 11). */
TEST(memalign_takes_any_alignment)
{
    static const size_t pairs[][2] = {{0, 16},      {1, 16},      {3, 16},         {17, 32},
                                      {24, 32},     {33, 64},     {48, 64},        {100, 128},
                                      {4095, 4096}, {4097, 8192}, {100000, 131072}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        for (size_t n = 0; n < 100000; n = n * 3 + 1) {
            void *p = NEED("memalign", do_memalign(pairs[i][0], n));
            good_block(p, pairs[i][1], n);
            pattern_fill(p, n, 4);
            CHECK_PATTERN(p, n, 4);
            do_free(p);
        }
    }
}

int main(void) { return tests_main("aligned"); }

/* calloc gives zeroes whatever its memory held before (trap 8): reused blocks of the same size, of
 * another size, large and huge ones, once written and freed. */
#include "check.h"

#define MANY 20000
static void *blocks[MANY];

static void dirty(size_t n, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        blocks[i] = NEED("malloc", do_malloc(n));
        memset(blocks[i], 0xa5, do_usable_size(blocks[i]));
    }
    for (unsigned i = 0; i < count; i++)
        do_free(blocks[i]);
}

static void expect_zeroes(size_t n, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        void *p = i % 2 == 0 ? do_calloc(1, n) : n % 8 == 0 ? do_calloc(n / 8, 8) : do_calloc(n, 1);
        blocks[i] = NEED("calloc", p);
        CHECK_BYTES(p, 0, n);
        CHECK_ALIGNED(p, 16);
        memset(p, 0x5a, do_usable_size(p));
    }
    for (unsigned i = 0; i < count; i++)
        do_free(blocks[i]);
}

TEST(every_small_size)
{
    for (size_t n = 1; n <= 2048; n++) {
        dirty(n, 12);
        expect_zeroes(n, 14);
    }
    for (size_t n = 2049; n <= 70000; n += 97) {
        dirty(n, 5);
        expect_zeroes(n, 6);
    }
}

TEST(large_sizes)
{
    for (size_t n = 64 * KiB; n <= 16 * MiB; n += n / 3) {
        dirty(n, 3);
        expect_zeroes(n, 4);
        expect_zeroes(n - 4097, 3);
        expect_zeroes(n / 2, 3);
    }
}

/* So many that they leave every cache and come back by another way. */
TEST(whole_slabs)
{
    static const size_t sizes[] = {1, 16, 48, 64, 100, 256, 1000, 1024, 3000};
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        dirty(sizes[k], MANY);
        expect_zeroes(sizes[k], MANY);
    }
}

TEST(memory_of_another_size)
{
    static const size_t sizes[] = {64, 5000, 1000, 16, 40000, 200, 300000, 32, 9000000, 20000};
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        size_t count = 64 * MiB / sizes[k];
        dirty(sizes[k], count < MANY ? (unsigned)count : MANY);
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            count = 12 * MiB / sizes[i];
            expect_zeroes(sizes[i], count < 3000 ? (unsigned)count : 3000);
        }
    }
}

/* A block that shrank leaves dirty memory behind. */
TEST(memory_that_realloc_gave_back)
{
    for (size_t n = 100; n <= 12 * MiB; n *= 3) {
        for (unsigned i = 0; i < 4; i++) {
            blocks[i] = NEED("malloc", do_malloc(n));
            memset(blocks[i], 0xa5, n);
            blocks[i] = NEED("realloc", do_realloc(blocks[i], n / 2 + 1));
        }
        unsigned char *zeroes = NEED("calloc", do_calloc(1, n / 2));
        CHECK_BYTES(zeroes, 0, n / 2);
        do_free(zeroes);
        for (unsigned i = 0; i < 4; i++)
            do_free(blocks[i]);
        expect_zeroes(n, 4);
    }
}

int main(void) { return tests_main("calloc"); }

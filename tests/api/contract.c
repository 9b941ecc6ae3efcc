/* Sentences of the glibc manual and of POSIX that no other topic tests. The whole table, sentence
 * by sentence, is in docs/contract.md. */
#include "check.h"

static void *(*volatile do_reallocarray)(void *, size_t, size_t) = NAME_UNDER_TEST(reallocarray);

/* "Does not round up to powers of two": a block wastes at most an eighth of itself and a page. */
TEST(sizes_are_not_rounded_to_powers_of_two)
{
    for (size_t n = 1; n < 64 * MiB; n += n / 37 + 1) {
        void *p = NEED("malloc", do_malloc(n));
        size_t usable = do_usable_size(p), most = n + n / 8 + (n > 32 * KiB ? 4096 : 32);
        CHECK(usable <= most, "usable size of malloc(%zu): expected at most %zu, found %zu", n,
              most, usable);
        do_free(p);
    }
}

/* "Disjoint from any other object", and "points to the lowest byte". */
struct extent {
    unsigned char *start;
    size_t n;
};

static int by_start(const void *a, const void *b)
{
    const struct extent *x = a, *y = b;
    return x->start < y->start ? -1 : x->start > y->start;
}

TEST(blocks_are_disjoint)
{
    enum { N = 20000 };
    static struct extent blocks[N];
    uint64_t random = 1;
    for (int i = 0; i < N; i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        size_t most = random >> 60 == 0 ? 300000 : 2000;
        blocks[i].n = (size_t)(random >> 20) % most;
        blocks[i].start = NEED("malloc", do_malloc(blocks[i].n));
        memset(blocks[i].start, i, blocks[i].n);
    }
    qsort(blocks, N, sizeof *blocks, by_start);
    for (int i = 1; i < N; i++)
        if (blocks[i].start < blocks[i - 1].start + do_usable_size(blocks[i - 1].start))
            CHECK(false, "block %p: expected it behind the %zu bytes from %p",
                  (void *)blocks[i].start, do_usable_size(blocks[i - 1].start),
                  (void *)blocks[i - 1].start);
    for (int i = 0; i < N; i++)
        do_free(blocks[i].start);
    CHECK(true, " ");
}

/* "Makes the block available to be allocated again." Any of them: one that a guard watches is held
   back for longer. */
TEST(freed_blocks_serve_again)
{
    enum { TURNS = 100 };
    static const size_t sizes[] = {1, 100, 5000, 32768, 100000, 1000000, 10000000};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        uintptr_t seen[TURNS];
        bool again = false;
        for (int turn = 0; turn < TURNS && !again; turn++) {
            void *p = NEED("malloc", do_malloc(sizes[i]));
            seen[turn] = (uintptr_t)p;
            for (int before = 0; before < turn; before++)
                again |= seen[before] == seen[turn];
            do_free(p);
        }
        CHECK(again, "malloc(%zu) and free, %d times: expected a block again", sizes[i], TURNS);
    }
}

/* "If the new size is the same as the old, realloc changes nothing and returns the same address."
 */
TEST(realloc_to_the_same_size_stays)
{
    for (size_t n = 1; n < 20 * MiB; n += n < 70000 ? 1 : n / 9) {
        unsigned char *p = NEED("malloc", do_malloc(n));
        uintptr_t before = (uintptr_t)p;
        p[0] = 1;
        p[n - 1] = 2;
        p = NEED("realloc", do_realloc(p, n));
        if ((uintptr_t)p != before)
            CHECK(false, "realloc(malloc(%zu), %zu): expected %#zx, found %p", n, n, before,
                  (void *)p);
        p = NEED("reallocarray", do_reallocarray(p, n, 1));
        if ((uintptr_t)p != before)
            CHECK(false, "reallocarray(malloc(%zu), %zu, 1): expected %#zx, found %p", n, n, before,
                  (void *)p);
        CHECK_SIZE("first and last byte", (size_t)p[0] + 256 * p[n - 1], n == 1 ? 514 : 513);
        do_free(p);
    }
}

/* "Equivalent to realloc(ptr, nmemb * size)." */
TEST(reallocarray_is_realloc)
{
    void *p = NEED("reallocarray(NULL, ...)", do_reallocarray(NULL, 10, 30));
    CHECK(do_usable_size(p) >= 300, "usable size: expected 300 or more, found %zu",
          do_usable_size(p));
    pattern_fill(p, 300, 5);
    p = NEED("reallocarray", do_reallocarray(p, 1000, 300));
    CHECK_PATTERN(p, 300, 5);
    p = NEED("reallocarray", do_reallocarray(p, 3, 50));
    CHECK_PATTERN(p, 150, 5);
    errno = 4321;
    CHECK_NULL("reallocarray(p, 0, 8)", do_reallocarray(p, 0, 8));
    CHECK_ERROR("errno after it", errno, 4321);
}

/* "The application shall ensure it is freed": by free, also where the size was 0. */
TEST(aligned_blocks_of_no_size)
{
    for (size_t align = sizeof(void *); align <= MiB; align *= 2) {
        void *a = NULL, *b = NULL;
        CHECK_ERROR("posix_memalign(&p, align, 0)", do_posix_memalign(&a, align, 0), 0);
        CHECK_ERROR("posix_memalign(&p, align, 0)", do_posix_memalign(&b, align, 0), 0);
        void *c = NEED("aligned_alloc(align, 0)", do_aligned_alloc(align, 0));
        CHECK(a != NULL && a != b && b != c && a != c,
              "alignment %zu, size 0: expected three blocks, found %p %p %p", align, a, b, c);
        CHECK_ALIGNED(a, align);
        CHECK_ALIGNED(c, align);
        do_free(a);
        do_free(b);
        do_free(c);
    }
}

/* "Its contents are cleared", whatever the block held before: of every way to have had it. */
TEST(calloc_after_every_use)
{
    for (size_t n = 1; n < 6 * MiB; n = n * 2 + 7) {
        unsigned char *p = NEED("malloc", do_malloc(n));
        memset(p, 0xff, n);
        p = NEED("realloc", do_realloc(p, 2 * n));
        memset(p, 0xff, 2 * n);
        do_free(p);
        p = NEED("calloc", do_calloc(2, n));
        CHECK_BYTES(p, 0, 2 * n);
        do_free(p);
    }
}

int main(void) { return tests_main("contract"); }

/* Every size: its address, its usable size, and that all of it belongs to the block. */
#include "check.h"

#include <unistd.h>

#define WINDOW 64

static struct {
    void *p;
    size_t usable;
    unsigned number;
} window[WINDOW];

static void retire(unsigned i)
{
    if (window[i].p == NULL)
        return;
    CHECK_PATTERN(window[i].p, window[i].usable, window[i].number);
    do_free(window[i].p);
    window[i].p = NULL;
}

static void try_size(size_t n, unsigned number)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    unsigned i = number % WINDOW;
    retire(i);
    void *p = NEED("malloc", do_malloc(n));
    size_t usable = do_usable_size(p);
    CHECK_ALIGNED(p, 16);
    CHECK(usable >= n, "usable size of malloc(%zu): expected at least that, found %zu", n, usable);
    CHECK(usable <= n + n / 4 + page + 16,
          "usable size of malloc(%zu): expected at most a quarter and a page more, found %zu", n,
          usable);
    pattern_fill(p, usable, number);
    window[i].p = p;
    window[i].usable = usable;
    window[i].number = number;
}

static void retire_all(void)
{
    for (unsigned i = 0; i < WINDOW; i++)
        retire(i);
}

TEST(every_size_to_70000)
{
    for (size_t n = 0; n <= 70000; n++)
        try_size(n, (unsigned)n);
    retire_all();
}

/* Eight steps to each doubling, as classes lie, and their neighbours. */
TEST(around_class_bounds)
{
    unsigned number = 0;
    for (size_t base = 64; base <= 2 * MiB; base *= 2)
        for (size_t step = 0; step < 8; step++)
            for (size_t off = 0; off < 5; off++)
                try_size(base + step * base / 8 + off - 2, number++);
    retire_all();
}

TEST(powers_of_two_to_64_mib)
{
    for (size_t n = 1; n <= 64 * MiB; n *= 2) {
        const size_t near[] = {n - 1, n, n + 1, n + 16, n + 4096, n > 4096 ? n - 4096 : n};
        for (unsigned i = 0; i < 6; i++) {
            try_size(near[i], i);
            if (n > 4 * MiB)
                retire(i);
        }
        retire_all();
    }
}

/* Blocks of one size at once: no two may overlap. */
TEST(many_of_a_size)
{
    enum { N = 3000 };
    static void *blocks[N];
    for (size_t n = 1; n <= 40000; n += n / 7 + 1) {
        unsigned count = n > 4000 ? 500 : N;
        for (unsigned i = 0; i < count; i++) {
            blocks[i] = NEED("malloc", do_malloc(n));
            pattern_fill(blocks[i], n, i);
        }
        for (unsigned i = 0; i < count; i++)
            CHECK_PATTERN(blocks[i], n, i);
        /* In neither order: 7 has no divisor in common with the counts. */
        for (unsigned i = 0; i < count; i++)
            do_free(blocks[i * 7 % count]);
    }
}

int main(void) { return tests_main("sizes"); }

/* Where realloc leaves a block: of every kind, however it came to be, at every size. It stays if it
 * gets no other size, or all that malloc_usable_size says; and where it becomes smaller, as long as
 * it is no more than twice as large as what it holds. A hardened heap leaves none that is larger
 * than a new one would be; a guarded block stays with any smaller size, as its page is its own.
 *
 * The content is the same after it, and all of the block may be written to. Run in each mode that
 * has blocks of its own kind. */
#include "check.h"

#include <hakmem/hakmem.h>
#include <stdlib.h>
#include <unistd.h>

#define ROUNDS 8         /* of small blocks, so that some are sampled */
#define ROUNDS_MOST 4096 /* bytes */
#define GUARDED 6        /* guarded blocks of each size and change */
#define TRIES 20000000

static bool is_hardened, has_guarded, checks_sizes;

/* ---- how a block comes to be ---- */

static void *from_malloc(size_t n) { return do_malloc(n); }
static void *from_calloc(size_t n) { return do_calloc(1, n); }
static void *from_null(size_t n) { return do_realloc(NULL, n); }
static void *grown(size_t n) { return do_realloc(n < 4 ? NULL : do_malloc(n / 4), n); }
static void *shrunk(size_t n) { return do_realloc(n == 0 ? NULL : do_malloc(4 * n + 100), n); }
static void *aligned(size_t n) { return do_aligned_alloc(64, n); }
static void *at_a_page(size_t n) { return do_memalign(4096, n); }
static void *at_much(size_t n) { return do_memalign(512 * KiB, n); }
static void *at_more(size_t n) { return do_memalign(8 * MiB, n); }
static void *past_the_stacks(size_t n) { return hakmem_defrag_malloc(n); }

static const struct {
    const char *name;
    void *(*make)(size_t n);
} makers[] = {
    {"malloc", from_malloc},       {"calloc", from_calloc},
    {"realloc(NULL)", from_null},  {"realloc to more", grown},
    {"realloc to less", shrunk},   {"aligned_alloc(64)", aligned},
    {"memalign(4096)", at_a_page}, {"memalign(512 KiB)", at_much},
    {"memalign(8 MiB)", at_more},  {"hakmem_defrag_malloc", past_the_stacks},
};

/* ---- what it becomes ---- */

enum { SAME, USABLE, ONE_LESS, HALF, ONE, CHANGES };
enum { MAKERS = sizeof makers / sizeof *makers };

static const char *const changes[] = {"the same size", "its usable size", "one byte less", "half",
                                      "one byte"};

static size_t changed(unsigned change, size_t n, size_t usable)
{
    switch (change) {
    case SAME:
        return n;
    case USABLE:
        return usable;
    case ONE_LESS:
        return n - (n > 0);
    case HALF:
        return n / 2;
    default:
        return n > 0;
    }
}

static const size_t sizes[] = {0,           1,        2,           15,    16,      17,      100,
                               333,         1000,     1024,        2051,  4095,    4096,    4097,
                               10000,       32768,    32769,       40000, 65536,   65537,   131073,
                               200000,      262144,   262145,      MiB,   MiB + 1, 2 * MiB, 3 * MiB,
                               3 * MiB + 5, 20 * MiB, 20 * MiB + 1};

/* No other block has such a size: theirs are multiples of 16, or in a hardened heap of 8. */
static bool is_guarded(const void *p, size_t n)
{
    return has_guarded && n % 8 != 0 && do_usable_size((void *)p) == n;
}

/* Whether, for its alignment, the block has another size than one of n bytes would have. */
static bool is_enlarged(size_t n, size_t usable)
{
    return is_hardened ? hakmem_good_size(n) != usable : usable >= 2 * n && usable > 16;
}

static bool must_stay(const void *p, size_t n, size_t usable, size_t to)
{
    if (to == usable)
        return true;
    if (to > usable)
        return false;
    if (is_guarded(p, n))
        return true;
    if (to == n)
        return !is_enlarged(n, usable);
    return is_hardened ? hakmem_good_size(to) == usable : 2 * to > usable;
}

static void resize(const char *maker, unsigned char *p, size_t n, unsigned change)
{
    size_t usable = do_usable_size(p), to = changed(change, n, usable);
    if (to == 0) { /* which frees */
        CHECK_NULL("realloc to 0 bytes", do_realloc(p, 0));
        return;
    }
    bool stays = must_stay(p, n, usable, to);
    size_t kept = to < n ? to : n;
    uintptr_t before = (uintptr_t)p;
    pattern_fill(p, n, change);
    p = NEED("realloc", do_realloc(p, to));
    if (stays && (uintptr_t)p != before)
        CHECK(false, "%s of %zu bytes (usable: %zu), realloc to %s, %zu: it moved", maker, n,
              usable, changes[change], to);
    CHECK_PATTERN(p, kept, change);
    size_t has = do_usable_size(p);
    if (has < to)
        CHECK(false, "%s of %zu bytes, realloc to %zu: usable size %zu", maker, n, to, has);
    memset(p, 0x7f, has);
    if (checks_sizes)
        hakmem_free_sized(p, to);
    else
        do_free(p);
}

TEST(every_kind_and_size)
{
    for (unsigned m = 0; m < MAKERS; m++)
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
            for (unsigned change = 0; change < CHANGES; change++)
                for (unsigned round = 0; round < (sizes[i] <= ROUNDS_MOST ? ROUNDS : 1); round++)
                    resize(makers[m].name, NEED(makers[m].name, makers[m].make(sizes[i])), sizes[i],
                           change);
}

/* In a process of one thread only the slow path looks at the time, which is to pass. */
static unsigned char *guarded(unsigned maker, size_t n)
{
    for (unsigned i = 0; i < TRIES; i++) {
        unsigned char *p = NEED(makers[maker].name, makers[maker].make(n));
        if (is_guarded(p, n))
            return p;
        do_free(p);
        if (i % 1000 == 999) {
            usleep(1000);
            do_free(NEED("malloc", do_malloc(3 * MiB)));
        }
    }
    CHECK(false, "no guarded block in %d calls of %s", TRIES, makers[maker].name);
    return NULL;
}

TEST(guarded_blocks)
{
    static const size_t odd[] = {1, 2, 17, 33, 333, 2051, 4095};
    for (unsigned m = 0; m < 3 && has_guarded; m++)
        for (size_t i = 0; i < sizeof odd / sizeof *odd; i++)
            for (unsigned change = 0; change < CHANGES; change++)
                for (unsigned k = 0; k < GUARDED; k++) {
                    unsigned char *p = guarded(m, odd[i]);
                    if (p == NULL)
                        return;
                    resize("a guarded block", p, odd[i], change);
                }
}

/* Down in steps, and up again, which may move it. */
TEST(step_by_step)
{
    for (unsigned round = 0; round < 50; round++) {
        size_t n = 2051;
        unsigned char *p = NEED("malloc", do_malloc(n));
        pattern_fill(p, n, round);
        for (; n > 1; n -= n / 3 + 1) {
            p = NEED("realloc", do_realloc(p, n));
            CHECK_PATTERN(p, n, round);
        }
        p = NEED("realloc", do_realloc(p, 3000));
        CHECK_PATTERN(p, 1, round);
        memset(p, 1, 3000);
        do_free(p);
    }
}

static uint64_t option(const char *name)
{
    uint64_t value = 0;
    CHECK_ERROR(name, hakmem_option(name, &value), 0);
    return value;
}

int main(void)
{
    is_hardened = option("preset") != 0 || option("check_functions") != 0;
    has_guarded = option("guards_a_second") != 0;
    checks_sizes = option("check_sizes") != 0;
    return tests_main("resize");
}

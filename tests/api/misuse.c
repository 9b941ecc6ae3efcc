/* Wrong calls with pointers. Each case runs in a child, which must end by SIGABRT after one report
 * on standard error whose first line has the address. ../misuse tests what a report says. Cases
 * "with others between" free so many blocks after the wrong call that errors that are found late
 * are found, too. */
#include "check.h"

#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define MANY 200000

static void **culprit; /* shared with the child: the address that the message must name */
static void *blocks[MANY];
static unsigned n_blocks;

static void wrong_free(void *p)
{
    *culprit = p;
    do_free(p);
}

static void wrong_realloc(void *p, size_t n)
{
    *culprit = p;
    do_realloc(p, n);
}

static void *get(size_t n)
{
    unsigned char *p = do_malloc(n);
    if (p == NULL)
        _exit(77);
    memset(p, 1, n < 64 ? n : 64);
    return p;
}

/* Blocks of one size, whose frees make every cache overflow. */
static void have_many(size_t n)
{
    size_t count = 96 * MiB / (n + 16);
    n_blocks = count < MANY ? (unsigned)count : MANY;
    for (unsigned i = 0; i < n_blocks; i++)
        blocks[i] = get(n);
}

static void free_many(void)
{
    for (unsigned i = 0; i < n_blocks; i++)
        do_free(blocks[i]);
}

/* ---- the judge ---- */

/* Of a case: mostly a size, and an offset in the block. */
typedef void wrong_call(size_t n, size_t offset);

struct wrong {
    wrong_call *call;
    size_t n, offset;
};

static void make_it(void *wrong)
{
    const struct wrong *w = wrong;
    w->call(w->n, w->offset);
}

static void expect_abort(const char *name, struct wrong w)
{
    static const char ends[] = "hakmem: the program ends here";
    char address[32];
    *culprit = NULL;
    struct child_end end = child_end(make_it, &w);
    snprintf(address, sizeof address, "(0x%zx", (size_t)*culprit);
    const char *named = strstr(end.said, address), *ended = strstr(end.said, ends);
    CHECK(WIFSIGNALED(end.status) && WTERMSIG(end.status) == SIGABRT && named != NULL &&
              named < strchrnul(end.said, '\n') && ended != NULL && strstr(ended + 1, ends) == NULL,
          "%s(%zu, %zu): expected SIGABRT after one report of %s, found status %#x: %s", name, w.n,
          w.offset, address, (unsigned)end.status, end.said);
}

#define EXPECT_ABORT(call, n, offset) expect_abort(#call, (struct wrong){call, (n), (offset)})

/* ---- pointers that were never blocks ---- */

enum foreign { STACK, STATIC, MAPPING };

static void *foreign(enum foreign kind)
{
    static char array[256] __attribute__((aligned(64)));
    return kind == STATIC
               ? array
               : mmap(NULL, 4 * MiB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

/* warm: the heap was used before. */
static void free_of_foreign(size_t kind, size_t warm)
{
    volatile char array[256] __attribute__((aligned(64)));
    array[0] = 1;
    if (warm)
        get(100);
    wrong_free(kind == STACK ? (void *)array : foreign((enum foreign)kind));
}

static void realloc_of_stack(size_t n, size_t unused)
{
    volatile char array[256] __attribute__((aligned(64)));
    array[0] = (char)unused;
    wrong_realloc((void *)array, n);
}

static void free_of_number(size_t number, size_t unused)
{
    (void)unused;
    wrong_free((void *)number);
}

TEST(pointers_that_were_never_blocks)
{
    static const size_t numbers[] = {
        16,
        4096,
        65536,
        0xdead0000beef0000, /* no address on this machine: must not be looked up unbounded */
        0xffff800000000000,
        SIZE_MAX - 15,
        (size_t)1 << 47,
        (size_t)1 << 48,
        (size_t)1 << 57,
    };
    for (size_t kind = STACK; kind <= MAPPING; kind++)
        EXPECT_ABORT(free_of_foreign, kind, false);
    EXPECT_ABORT(free_of_foreign, STACK, true);
    EXPECT_ABORT(realloc_of_stack, 1000, 0);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        EXPECT_ABORT(free_of_number, numbers[i], 0);
}

/* ---- pointers into blocks ---- */

static void free_inside(size_t n, size_t offset) { wrong_free((char *)get(n) + offset); }
static void realloc_inside(size_t n, size_t offset) { wrong_realloc((char *)get(n) + offset, n); }

TEST(pointers_into_blocks)
{
    static const size_t sizes[] = {24, 64, 1000, 20000, 100000, 1048576, 8388608};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        EXPECT_ABORT(free_inside, sizes[i], 8);
        EXPECT_ABORT(free_inside, sizes[i], 1);
        EXPECT_ABORT(realloc_inside, sizes[i], 8);
    }
    for (size_t n = 256 * KiB; n <= 16 * MiB; n *= 2) {
        const size_t offsets[] = {n / 2, 16, 4096, 64 * KiB};
        for (size_t i = 0; i < sizeof offsets / sizeof *offsets; i++)
            EXPECT_ABORT(free_inside, n, offsets[i]);
        EXPECT_ABORT(realloc_inside, n, n / 2);
    }
}

/* ---- twice ---- */

static void free_twice(size_t n, size_t unused)
{
    void *p = get(n);
    (void)unused;
    do_free(p);
    wrong_free(p);
}

static void free_twice_among_others(size_t n, size_t unused)
{
    (void)unused;
    for (int i = 0; i < 100; i++)
        blocks[i] = get(n);
    for (int i = 0; i < 50; i++)
        do_free(blocks[i]);
    wrong_free(blocks[49]);
}

static void realloc_to_zero_then_free(size_t n, size_t unused)
{
    void *p = get(n);
    (void)unused;
    do_realloc(p, 0);
    wrong_free(p);
}

TEST(freed_twice_in_a_row)
{
    static const size_t sizes[] = {0,      1,       16,      64,      1000,    8000,     32768,
                                   100000, 1048576, 2097152, 3000000, 8388608, 100000000};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        EXPECT_ABORT(free_twice, sizes[i], 0);
        EXPECT_ABORT(realloc_to_zero_then_free, sizes[i], 0);
        if (sizes[i] < 10 * MiB)
            EXPECT_ABORT(free_twice_among_others, sizes[i], 0);
    }
}

/* ---- with others between ---- */

static void free_twice_with_others_between(size_t n, size_t unused)
{
    (void)unused;
    void *a = get(n), *b = get(n);
    have_many(n);
    do_free(a);
    do_free(b);
    wrong_free(a);
    free_many();
}

static void free_twice_with_a_flush_between(size_t n, size_t unused)
{
    (void)unused;
    void *a = get(n);
    have_many(n);
    do_free(a);
    free_many();
    have_many(n / 2 + 1); /* of another class, so that nobody gets a */
    wrong_free(a);
    for (unsigned i = 0; i < n_blocks; i++)
        do_free(blocks[i]);
    have_many(n);
    free_many();
}

static void free_inside_with_others_between(size_t n, size_t offset)
{
    char *p = get(n);
    have_many(n);
    wrong_free(p + offset);
    free_many();
}

static void *free_a_b_a(void *argument)
{
    void **two = argument;
    do_free(two[0]);
    do_free(two[1]);
    wrong_free(two[0]);
    return NULL;
}

static void free_twice_in_a_thread_that_ends(size_t n, size_t unused)
{
    (void)unused;
    void *two[2] = {get(n), get(n)};
    have_many(n);
    in_thread(free_a_b_a, two);
    free_many();
}

static void *have_some(void *n)
{
    for (n_blocks = 0; n_blocks < 100; n_blocks++)
        blocks[n_blocks] = get(*(size_t *)n);
    return NULL;
}

static void *grow_the_heap(void *unused)
{
    for (int i = 0; i < 1000; i++)
        get(60000);
    return unused;
}

/* A block that was written after it was freed, so that freeing it again does not show until it
 * leaves the stack: with the older half of it, as the heap has grown. `get_first`: by a malloc that
 * finds its stack empty, or else by a free. */
static void free_twice_before_growth(size_t n, size_t get_first)
{
    void *other = get(3 * MiB); /* no stack has room for it */
    in_thread(have_some, &n);
    do_free(blocks[0]);
    do_free(blocks[1]);
    ((void *volatile *)blocks[0])[1] = NULL;
    wrong_free(blocks[0]);
    for (int i = 2; i < 8; i++)
        do_free(blocks[i]);
    in_thread(grow_the_heap, NULL);
    if (get_first)
        get(3000);
    else
        do_free(other);
}

TEST(freed_twice_or_inside_with_others_between)
{
    static const size_t sizes[] = {16, 64, 200, 1000, 8000, 30000};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        EXPECT_ABORT(free_twice_with_others_between, sizes[i], 0);
        EXPECT_ABORT(free_twice_with_a_flush_between, sizes[i], 0);
        EXPECT_ABORT(free_twice_in_a_thread_that_ends, sizes[i], 0);
        if (sizes[i] > 16)
            EXPECT_ABORT(free_inside_with_others_between, sizes[i], sizes[i] / 2 / 16 * 16);
    }
    /* Of what a stack gives up as it grows older. */
    EXPECT_ABORT(free_twice_before_growth, 64, true);
    EXPECT_ABORT(free_twice_before_growth, 64, false);
}

/* Large blocks have no stack to wait in: it is found at once. */
TEST(large_blocks_freed_twice_with_others_between)
{
    for (size_t n = 256 * KiB; n <= 8 * MiB; n *= 2)
        EXPECT_ABORT(free_twice_with_others_between, n, 0);
}

/* ---- every pattern of two blocks ---- */

enum step { MALLOC_A, MALLOC_B, FREE_A, FREE_B, FREE_OTHERS };
#define PATTERN_MOST 6
#define PATTERN_SIZE 100000 /* blocks of whole slices: the map knows which are in use */

/* A thread's stack takes about ten such blocks, then the older half goes to the slabs: what is
 * freed twice may be in its slab and in the stack. */
#define OTHERS_STEP 4
#define OTHERS_STEPS_MOST 2
#define OTHERS (OTHERS_STEP * OTHERS_STEPS_MOST)

static bool is_free_step(unsigned step) { return step == FREE_A || step == FREE_B; }

/* A pattern is a number with a decimal digit for each step, MALLOC_A being 1; the first step is the
 * highest digit. */
static unsigned steps_of(size_t pattern, unsigned *steps)
{
    unsigned n = 0;
    for (size_t power = 100000; power > 0; power /= 10)
        if (pattern / power > 0)
            steps[n++] = (unsigned)(pattern / power % 10) - 1;
    return n;
}

static void get_others(void)
{
    for (n_blocks = 0; n_blocks < OTHERS; n_blocks++)
        blocks[n_blocks] = get(PATTERN_SIZE);
}

static void free_others(unsigned n)
{
    while (n-- > 0)
        wrong_free(blocks[--n_blocks]);
}

/* At its end what is in use is freed: one free more than mallocs, so one is wrong, though it need
 * not be the one that the pattern has twice, where the address has been handed out again. */
static void run_pattern(size_t pattern, size_t unused)
{
    (void)unused;
    unsigned steps[PATTERN_MOST], n = steps_of(pattern, steps);
    void *block[2] = {NULL, NULL};
    bool used[2] = {false, false};
    get_others();
    for (unsigned i = 0; i < n; i++) {
        unsigned which = steps[i] % 2;
        if (steps[i] == FREE_OTHERS) {
            free_others(OTHERS_STEP);
            continue;
        }
        used[which] = !is_free_step(steps[i]);
        if (used[which])
            block[which] = get(PATTERN_SIZE);
        else
            wrong_free(block[which]);
    }
    free_others(n_blocks);
    get_others();
    for (unsigned which = 0; which < 2; which++)
        if (used[which])
            wrong_free(block[which]);
    free_others(n_blocks);
}

static unsigned patterns;

/* All that begin with `pattern`, have up to `left` steps more, and one double free. `in_use` and
 * `freed` have a bit for each of the two blocks. */
static void patterns_from(size_t pattern, unsigned left, unsigned in_use, unsigned freed,
                          unsigned others, bool doubled)
{
    if (doubled) {
        EXPECT_ABORT(run_pattern, pattern, 0);
        patterns++;
    }
    for (unsigned step = 0; step <= FREE_OTHERS && left > 0; step++) {
        unsigned bit = 1u << step % 2;
        size_t longer = pattern * 10 + step + 1;
        if (step == FREE_OTHERS && freed != 0 && others < OTHERS_STEPS_MOST)
            patterns_from(longer, left - 1, in_use, freed, others + 1, doubled);
        else if (step < FREE_A && (in_use & bit) == 0)
            patterns_from(longer, left - 1, in_use | bit, freed & ~bit, others, doubled);
        else if (is_free_step(step) && (in_use & bit) != 0)
            patterns_from(longer, left - 1, in_use & ~bit, freed | bit, others, doubled);
        else if (is_free_step(step) && (freed & bit) != 0 && !doubled)
            patterns_from(longer, left - 1, in_use, freed, others, true);
    }
}

/* Such a pattern could end in malloc, by SIGSEGV. */
TEST(every_pattern_with_a_double_free)
{
    patterns_from(0, PATTERN_MOST, 0, 0, 0, false);
    CHECK(patterns > 100, "patterns: expected more than 100, found %u", patterns);
}

int main(void)
{
    check_start("misuse");
    culprit = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (!CHECK(culprit != MAP_FAILED, "mmap: %s", error_name(errno)))
        return check_end();
    tests_run();
    return check_end();
}

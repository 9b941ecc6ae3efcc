/* Wrong calls with pointers. Each case runs in a child, which must end by SIGABRT after one report
 * on standard error: lines that begin with "hakmem: ", the first of which has the address.
 * ../misuse tests what a report says. Cases "with others between" free so many blocks after the
 * wrong call that errors that are found late are found, too. */
#include "check.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
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

/* ---- pointers that were never blocks ---- */

static void free_of_stack(size_t unused)
{
    (void)unused;
    volatile char array[256] __attribute__((aligned(64)));
    array[0] = 1;
    wrong_free((void *)array);
}

static void free_of_static(size_t unused)
{
    (void)unused;
    static char array[256] __attribute__((aligned(64)));
    wrong_free(array);
}

static void free_of_mapping(size_t unused)
{
    (void)unused;
    wrong_free(mmap(NULL, 4 * MiB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
}

static void free_of_number(size_t number) { wrong_free((void *)number); }

static void free_of_stack_first(size_t unused)
{
    get(100);
    free_of_stack(unused);
}

static void realloc_of_stack(size_t unused)
{
    (void)unused;
    volatile char array[256] __attribute__((aligned(64)));
    array[0] = 1;
    *culprit = (void *)array;
    do_realloc((void *)array, 1000);
}

/* ---- pointers into blocks ---- */

static void free_of_p_plus_8(size_t n)
{
    char *p = get(n);
    wrong_free(p + 8);
}

static void free_of_p_plus_1(size_t n)
{
    char *p = get(n);
    wrong_free(p + 1);
}

static void free_of_middle(size_t n)
{
    char *p = get(n);
    wrong_free(p + n / 2 / 64 * 64);
}

static void free_of_p_plus_16(size_t n)
{
    char *p = get(n);
    wrong_free(p + 16);
}

static void free_of_p_plus_page(size_t n)
{
    char *p = get(n);
    wrong_free(p + 4096);
}

static void free_of_p_plus_64k(size_t n)
{
    char *p = get(n);
    wrong_free(p + 64 * KiB);
}

static void realloc_of_middle(size_t n)
{
    char *p = get(n);
    *culprit = p + n / 2 / 64 * 64;
    do_realloc(*culprit, n);
}

static void realloc_of_p_plus_8(size_t n)
{
    char *p = get(n);
    *culprit = p + 8;
    do_realloc(*culprit, n);
}

/* ---- twice ---- */

static void free_twice(size_t n)
{
    void *p = get(n);
    do_free(p);
    wrong_free(p);
}

static void free_twice_among_others(size_t n)
{
    for (int i = 0; i < 100; i++)
        blocks[i] = get(n);
    for (int i = 0; i < 50; i++)
        do_free(blocks[i]);
    wrong_free(blocks[49]);
}

static void realloc_to_zero_then_free(size_t n)
{
    void *p = get(n);
    do_realloc(p, 0);
    wrong_free(p);
}

/* ---- with others between ---- */

static void free_twice_with_others_between(size_t n)
{
    void *a = get(n), *b = get(n);
    have_many(n);
    do_free(a);
    do_free(b);
    wrong_free(a);
    free_many();
}

static void free_twice_with_a_flush_between(size_t n)
{
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

static void free_of_inner_small(size_t n)
{
    char *p = get(n);
    have_many(n);
    wrong_free(p + n / 2 / 16 * 16);
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

static void free_twice_in_a_thread_that_ends(size_t n)
{
    pthread_t thread;
    void *two[2] = {get(n), get(n)};
    have_many(n);
    if (pthread_create(&thread, NULL, free_a_b_a, two) != 0)
        _exit(77);
    pthread_join(thread, NULL);
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

static void run_thread(void *(*run)(void *), void *argument)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, run, argument) != 0)
        _exit(77);
    pthread_join(thread, NULL);
}

/* A block that was written after it was freed, so that freeing it again does not show until it
 * leaves the stack: with the older half of it, as the heap has grown. `get_first`: by a malloc that
 * finds its stack empty, or else by a free. */
static void free_twice_before_growth(size_t n, bool get_first)
{
    void *other = get(3 * MiB); /* no stack has room for it */
    run_thread(have_some, &n);
    do_free(blocks[0]);
    do_free(blocks[1]);
    ((void *volatile *)blocks[0])[1] = NULL;
    wrong_free(blocks[0]);
    for (int i = 2; i < 8; i++)
        do_free(blocks[i]);
    run_thread(grow_the_heap, NULL);
    if (get_first)
        get(3000);
    else
        do_free(other);
}

static void free_twice_before_growth_and_malloc(size_t n) { free_twice_before_growth(n, true); }
static void free_twice_before_growth_and_free(size_t n) { free_twice_before_growth(n, false); }

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
static void run_pattern(size_t pattern)
{
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

/* ---- the judge ---- */

/* Everything that the child writes to stderr, until it closes it. */
static void read_all(int file, char *text, size_t room)
{
    size_t length = 0;
    ssize_t got;
    while (length + 1 < room && (got = read(file, text + length, room - 1 - length)) > 0)
        length += (size_t)got;
    text[length] = 0;
}

static void judge_message(const char *name, size_t n, char *text)
{
    char address[32];
    char *emulators_own = UNDER_EMULATOR ? strstr(text, "qemu: uncaught target signal 6") : NULL;
    if (emulators_own != NULL)
        *emulators_own = 0;
    snprintf(address, sizeof address, "(0x%zx", (size_t)*culprit);
    const char *end = strchrnul(text, '\n');
    const char *found = strstr(text, address);
    CHECK(found != NULL && found < end,
          "%s(%zu): message: expected the address %s in the first line, found: %s", name, n,
          address, text);
    unsigned ends = 0;
    for (const char *line = text; *line != '\0'; line = *end == '\0' ? end : end + 1) {
        end = strchrnul(line, '\n');
        CHECK(*end == '\n' && strncmp(line, "hakmem: ", 8) == 0,
              "%s(%zu): message: expected \"hakmem: \" before every line, found: %s", name, n,
              text);
        ends += strncmp(line, "hakmem: the program ends here", 29) == 0;
    }
    CHECK(ends == 1, "%s(%zu): message: expected one end of the program, found %u: %s", name, n,
          ends, text);
}

static void expect_abort(const char *name, void (*misuse)(size_t), size_t n)
{
    static char text[64 * KiB];
    int ends[2], status = 0;
    *culprit = NULL;
    if (!CHECK(pipe(ends) == 0, "pipe: %s", error_name(errno)))
        return;
    pid_t pid = fork();
    if (pid == 0) {
        const struct rlimit none = {0, 0};
        setrlimit(RLIMIT_CORE, &none);
        dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        close(ends[1]);
        alarm(300);
        misuse(n);
        _exit(0);
    }
    close(ends[1]);
    read_all(ends[0], text, sizeof text);
    close(ends[0]);
    if (!CHECK(pid > 0 && waitpid(pid, &status, 0) == pid, "fork: %s", error_name(errno)))
        return;
    if (WIFEXITED(status)) {
        CHECK(false, "%s(%zu): expected SIGABRT, found that it ended with %d", name, n,
              WEXITSTATUS(status));
        return;
    }
    if (CHECK(WTERMSIG(status) == SIGABRT, "%s(%zu): expected SIGABRT, found signal %d (%s)", name,
              n, WTERMSIG(status), strsignal(WTERMSIG(status))))
        judge_message(name, n, text);
}

#define EXPECT_ABORT(misuse, n) expect_abort(#misuse, misuse, (n))

static void pointers_that_were_never_blocks(void)
{
    EXPECT_ABORT(free_of_stack, 0);
    EXPECT_ABORT(free_of_stack_first, 0);
    EXPECT_ABORT(free_of_static, 0);
    EXPECT_ABORT(free_of_mapping, 0);
    EXPECT_ABORT(realloc_of_stack, 0);
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
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        EXPECT_ABORT(free_of_number, numbers[i]);
}

static void pointers_into_blocks(void)
{
    static const size_t sizes[] = {24, 64, 1000, 20000, 100000, 1048576, 8388608};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        EXPECT_ABORT(free_of_p_plus_8, sizes[i]);
        EXPECT_ABORT(free_of_p_plus_1, sizes[i]);
        EXPECT_ABORT(realloc_of_p_plus_8, sizes[i]);
    }
    EXPECT_ABORT(free_of_middle, 256 * KiB);
    EXPECT_ABORT(realloc_of_middle, 256 * KiB);
    for (size_t n = 512 * KiB; n <= 16 * MiB; n *= 2) {
        EXPECT_ABORT(free_of_middle, n);
        EXPECT_ABORT(free_of_p_plus_16, n);
        EXPECT_ABORT(free_of_p_plus_page, n);
        EXPECT_ABORT(free_of_p_plus_64k, n);
        EXPECT_ABORT(realloc_of_middle, n);
    }
}

static void freed_twice_in_a_row(void)
{
    static const size_t sizes[] = {0,      1,       16,      64,      1000,    8000,     32768,
                                   100000, 1048576, 2097152, 3000000, 8388608, 100000000};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        EXPECT_ABORT(free_twice, sizes[i]);
        EXPECT_ABORT(realloc_to_zero_then_free, sizes[i]);
        if (sizes[i] < 10 * MiB)
            EXPECT_ABORT(free_twice_among_others, sizes[i]);
    }
}

static void freed_twice_or_inside_with_others_between(void)
{
    static const size_t sizes[] = {16, 64, 200, 1000, 8000, 30000};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        EXPECT_ABORT(free_twice_with_others_between, sizes[i]);
        EXPECT_ABORT(free_twice_with_a_flush_between, sizes[i]);
        EXPECT_ABORT(free_twice_in_a_thread_that_ends, sizes[i]);
        if (sizes[i] > 16)
            EXPECT_ABORT(free_of_inner_small, sizes[i]);
    }
}

/* Of what a stack gives up as it grows older. */
static void freed_twice_before_the_heap_grew(void)
{
    EXPECT_ABORT(free_twice_before_growth_and_malloc, 64);
    EXPECT_ABORT(free_twice_before_growth_and_free, 64);
}

/* Large blocks have no stack to wait in: it is found at once. */
static void large_blocks_freed_twice_with_others_between(void)
{
    for (size_t n = 256 * KiB; n <= 8 * MiB; n *= 2)
        EXPECT_ABORT(free_twice_with_others_between, n);
}

static unsigned patterns;

/* All that begin with `pattern`, have up to `left` steps more, and one double free. `in_use` and
 * `freed` have a bit for each of the two blocks. */
static void patterns_from(size_t pattern, unsigned left, unsigned in_use, unsigned freed,
                          unsigned others, bool doubled)
{
    if (doubled) {
        EXPECT_ABORT(run_pattern, pattern);
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
static void every_pattern_with_a_double_free(void)
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
    RUN(pointers_that_were_never_blocks);
    RUN(pointers_into_blocks);
    RUN(freed_twice_in_a_row);
    RUN(freed_twice_or_inside_with_others_between);
    RUN(freed_twice_before_the_heap_grew);
    RUN(large_blocks_freed_twice_with_others_between);
    RUN(every_pattern_with_a_double_free);
    return check_end();
}

/* glibc's extensions: their results describe this program's blocks. */
#include "check.h"
#include "stats.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#pragma GCC diagnostic ignored "-Wdeprecated-declarations" /* mallinfo is */
typedef __typeof__(NAME_UNDER_TEST(mallinfo2)()) info2;
typedef __typeof__(NAME_UNDER_TEST(mallinfo)()) info;

static info2 (*volatile do_mallinfo2)(void) = NAME_UNDER_TEST(mallinfo2);
static info (*volatile do_mallinfo)(void) = NAME_UNDER_TEST(mallinfo);
static int (*volatile do_malloc_trim)(size_t) = NAME_UNDER_TEST(malloc_trim);
static int (*volatile do_malloc_info)(int, FILE *) = NAME_UNDER_TEST(malloc_info);
static void (*volatile do_malloc_stats)(void) = NAME_UNDER_TEST(malloc_stats);
static int (*volatile do_mallopt)(int, int) = NAME_UNDER_TEST(mallopt);

_Static_assert(sizeof(struct hakmem_mallinfo2) == sizeof(struct mallinfo2) &&
                   offsetof(struct hakmem_mallinfo2, keepcost) ==
                       offsetof(struct mallinfo2, keepcost) &&
                   offsetof(struct hakmem_mallinfo2, uordblks) ==
                       offsetof(struct mallinfo2, uordblks) &&
                   sizeof(struct hakmem_mallinfo) == sizeof(struct mallinfo),
               "one is an alias of the other");

/* ---- mallinfo ---- */

static void adds_up(const info2 *i)
{
    CHECK_SIZE("uordblks + fordblks", i->uordblks + i->fordblks, i->arena);
    CHECK_SIZE("usmblks", i->usmblks, 0);
    CHECK(i->keepcost <= i->fordblks, "keepcost: expected at most fordblks %zu, found %zu",
          i->fordblks, i->keepcost);
}

TEST(used_follows_blocks)
{
    static const size_t sizes[] = {1, 24, 100, 999, 5000, 32768, 100000, 1000000};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        size_t n = sizes[s];
        void *blocks[50];
        info2 before = do_mallinfo2();
        for (int k = 0; k < 50; k++)
            blocks[k] = NEED("malloc", do_malloc(n));
        info2 with = do_mallinfo2();
        size_t more = with.uordblks - before.uordblks;
        CHECK(more >= 50 * n && more <= 50 * (n + n / 8 + 4096),
              "uordblks with 50 blocks of %zu: expected %zu more, with rounding, found %zu", n,
              50 * n, more);
        adds_up(&with);
        for (int k = 0; k < 50; k++)
            do_free(blocks[k]);
        info2 after = do_mallinfo2();
        CHECK_SIZE("uordblks after free", after.uordblks, before.uordblks);
        adds_up(&after);
    }
}

TEST(mapped_blocks_are_counted_apart)
{
    info2 before = do_mallinfo2();
    void *p = NEED("malloc", do_malloc(10 * MiB));
    info2 with = do_mallinfo2();
    CHECK_SIZE("hblks", with.hblks, before.hblks + 1);
    CHECK(with.hblkhd - before.hblkhd >= 10 * MiB && with.hblkhd - before.hblkhd < 11 * MiB,
          "hblkhd: expected 10 MiB more, found %zu", with.hblkhd - before.hblkhd);
    CHECK_SIZE("uordblks", with.uordblks, before.uordblks);
    do_free(p);
    CHECK_SIZE("hblks after free", do_mallinfo2().hblks, before.hblks);
}

/* On a slow machine free memory of others goes back meanwhile, and is counted no more: so it does
 * before. */
TEST(free_blocks_are_counted)
{
    enum { N = 5000 };
    static void *blocks[N];
    do_malloc_trim(0);
    for (int i = 0; i < N; i++)
        blocks[i] = NEED("malloc", do_malloc(300));
    info2 with = do_mallinfo2();
    for (int i = 0; i < N; i += 2)
        do_free(blocks[i]);
    info2 after = do_mallinfo2();
    CHECK_SIZE("free blocks, in caches and slabs",
               after.smblks + after.ordblks - with.smblks - with.ordblks, N / 2);
    CHECK_SIZE("uordblks", with.uordblks - after.uordblks, N / 2 * do_usable_size(blocks[1]));
    CHECK(after.fsmblks > 0, "fsmblks: expected more than 0");
    for (int i = 1; i < N; i += 2)
        do_free(blocks[i]);
}

/* 3 GiB of addresses, never touched. */
TEST(old_mallinfo_is_clamped)
{
    info small = do_mallinfo();
    info2 exact = do_mallinfo2();
    CHECK_SIZE("mallinfo().uordblks", (size_t)small.uordblks, exact.uordblks);
    CHECK_SIZE("mallinfo().fordblks", (size_t)small.fordblks, exact.fordblks);
    void *p = do_malloc(3072 * MiB);
    if (p == NULL)
        return; /* a machine that commits what it promises */
    CHECK_SIZE("mallinfo().hblkhd of 3 GiB", (size_t)do_mallinfo().hblkhd, INT_MAX);
    do_free(p);
}

/* ---- malloc_trim ---- */

static size_t resident(void)
{
    char text[4096];
    int file = open("/proc/self/smaps_rollup", O_RDONLY);
    ssize_t length = file < 0 ? -1 : read(file, text, sizeof text - 1);
    if (!CHECK(length > 0, "/proc/self/smaps_rollup: expected text, found %s", error_name(errno)))
        return 0;
    close(file);
    text[length] = '\0';
    const char *line = strstr(text, "\nRss:");
    return line == NULL ? 0 : strtoul(line + 5, NULL, 10) * KiB;
}

static void touch_and_free(size_t count, size_t n)
{
    static void *blocks[20480]; /* 5 MiB of the smallest */
    for (size_t i = 0; i < count; i++) {
        blocks[i] = NEED("malloc", do_malloc(n));
        memset(blocks[i], 1, n);
    }
    for (size_t i = 0; i < count; i++)
        do_free(blocks[i]);
}

TEST(trim_gives_memory_back)
{
    static const size_t sizes[] = {256, 4096, 200000, 5000000};
    do_mallopt(M_TRIM_THRESHOLD, -1); /* what is free stays until it is asked for */
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        size_t n = sizes[i], all = (n > 4096 ? 20 : 5) * MiB / n * n;
        touch_and_free(all / n, n); /* the pointers to so many blocks, which stay */
        do_malloc_trim(0);
        size_t before = resident();
        touch_and_free(all / n, n);
        size_t kept = resident();
        CHECK(kept >= before + all / 2, "resident with %zu kept: expected %zu, found %zu", all,
              before + all, kept);
        CHECK_SIZE("malloc_trim(0)", (size_t)do_malloc_trim(0), 1);
        size_t after = resident();
        CHECK(after <= before + all / 8, "resident after malloc_trim: expected %zu, found %zu",
              before, after);
        CHECK_SIZE("malloc_trim(0) again", (size_t)do_malloc_trim(0), 0);
    }
}

TEST(trim_leaves_the_pad)
{
    do_malloc_trim(0);
    do_mallopt(M_TRIM_THRESHOLD, -1);
    touch_and_free(5000, 4096);
    CHECK_SIZE("malloc_trim(4 MiB)", (size_t)do_malloc_trim(4 * MiB), 1);
    size_t kept = do_mallinfo2().keepcost;
    CHECK(kept > 0 && kept <= 4 * MiB, "keepcost: expected up to 4 MiB, found %zu", kept);
    CHECK_SIZE("malloc_trim(4 MiB) again", (size_t)do_malloc_trim(4 * MiB), 0);
    CHECK_SIZE("malloc_trim(0)", (size_t)do_malloc_trim(0), 1);
    CHECK_SIZE("keepcost", do_mallinfo2().keepcost, 0);
}

/* ---- malloc_stats, malloc_info ---- */

/* The most huge blocks that were there at once, and their bytes. */
struct most {
    size_t regions, bytes;
};

static void lines_are(const char *text, info2 info, struct hakmem_stats stats, struct most most)
{
    struct {
        const char *words;
        size_t number;
    } lines[] = {
        {"Arena 0:\nsystem bytes     = ", info.arena},
        {"in use bytes     = ", info.uordblks},
        {"Total (incl. mmap):\nsystem bytes     = ", stats.mapped},
        {"in use bytes     = ", stats.program},
        {"max mmap regions = ", most.regions},
        {"max mmap bytes   = ", most.bytes},
        {"hakmem:\nmmap regions     = ", info.hblks},
        {"mmap bytes       = ", info.hblkhd},
        {"thread caches    = ", stats.thread_caches},
        {"transfer caches  = ", stats.transfer},
        {"free in slabs    = ", stats.free_in_slabs},
        {"retained         = ", stats.retained},
        {"kept mappings    = ", stats.kept},
        {"metadata         = ", stats.metadata + stats.map},
        {"max system bytes = ", stats.mapped_most},
    };
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        size_t length = strlen(lines[i].words);
        if (!CHECK(strncmp(text, lines[i].words, length) == 0,
                   "malloc_stats: expected %s, found %s", lines[i].words, text))
            return;
        char *end;
        CHECK_SIZE(lines[i].words, strtoul(text + length, &end, 10), lines[i].number);
        CHECK(end == text + length + 10, "expected 10 columns: %.60s", text);
        text = end + 1;
    }
}

static void read_stats(char *text, size_t room)
{
    int pipe_ends[2], saved = dup(STDERR_FILENO);
    CHECK(pipe(pipe_ends) == 0, "pipe: %s", error_name(errno));
    dup2(pipe_ends[1], STDERR_FILENO);
    do_malloc_stats();
    dup2(saved, STDERR_FILENO);
    ssize_t length = read(pipe_ends[0], text, room - 1);
    close(pipe_ends[0]);
    close(pipe_ends[1]);
    close(saved);
    text[length > 0 ? length : 0] = '\0';
    CHECK(length > 0, "malloc_stats: expected text on standard error");
}

static struct most most_printed(void)
{
    char text[4096];
    read_stats(text, sizeof text);
    struct most most = {0, 0};
    const char *at = strstr(text, "\nmax mmap regions = ");
    CHECK(at != NULL && sscanf(at, "\nmax mmap regions = %10zu\nmax mmap bytes   = %10zu\n",
                               &most.regions, &most.bytes) == 2,
          "malloc_stats: expected lines of max mmap, found %s", text);
    return most;
}

TEST(stats_are_printed)
{
    char text[4096];
    struct most most = most_printed();
    struct hakmem_stats stats = stats_now();
    info2 before = do_mallinfo2();
    read_stats(text, sizeof text);
    info2 after = do_mallinfo2();
    lines_are(text, before, stats, most);
    CHECK_SIZE("uordblks after malloc_stats", after.uordblks, before.uordblks);
}

/* Before others have more. */
TEST_FIRST(most_mapped_is_printed)
{
    enum { BLOCKS = 20 };
    void *blocks[BLOCKS];
    struct most before = most_printed();
    for (int i = 0; i < BLOCKS; i++)
        blocks[i] = NEED("malloc", do_malloc(16 * MiB));
    info2 info = do_mallinfo2();
    for (int i = 0; i < BLOCKS; i++)
        do_free(blocks[i]);
    struct most most = most_printed();
    CHECK(most.regions >= before.regions && most.bytes >= before.bytes, "the most has become less");
    CHECK_SIZE("max mmap regions", most.regions, info.hblks);
    CHECK_SIZE("max mmap bytes", most.bytes, info.hblkhd);
    do_free(NEED("malloc", do_malloc(16 * MiB)));
    CHECK_SIZE("max mmap regions later", most_printed().regions, most.regions);
    do_malloc_trim(0);
}

TEST(info_refuses_options)
{
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    CHECK_ERROR("malloc_info(1, stream)", do_malloc_info(1, stream), EINVAL);
    fclose(stream);
    CHECK_SIZE("bytes written", size, 0);
    free(text);
    stream = open_memstream(&text, &size); /* allocates while it is written to */
    CHECK_ERROR("malloc_info(0, stream)", do_malloc_info(0, stream), 0);
    fclose(stream);
    CHECK(size > 500 && strncmp(text, "<malloc version=\"1\">", 20) == 0,
          "malloc_info: expected XML, found %zu bytes: %.40s", size, text);
    free(text);
}

/* ---- mallopt ---- */

static void set_trim_threshold(int value)
{
    CHECK_SIZE("mallopt(M_TRIM_THRESHOLD)", (size_t)do_mallopt(M_TRIM_THRESHOLD, value), 1);
}

/* How far a threshold may be passed between two looks. */
#define BEYOND (MiB + 64 * KiB)

TEST(trim_threshold)
{
    do_malloc_trim(0);
    set_trim_threshold(-1);
    touch_and_free(20000, 4000);
    size_t kept = stats_now().retained;
    CHECK(kept > 70 * MiB, "retained with no threshold: expected 76 MiB, found %zu", kept);
    set_trim_threshold(16 << 20);
    kept = stats_now().retained;
    CHECK(kept <= 16 * MiB, "retained after 16 MiB was set: expected that or less, found %zu",
          kept);
    set_trim_threshold(8 << 20);
    touch_and_free(20000, 4000);
    kept = stats_now().retained;
    CHECK(kept <= 8 * MiB + BEYOND, "retained with 8 MiB: expected that or less, found %zu", kept);
    set_trim_threshold(32 << 20); /* as it was */
}

/* Once nothing was to go back, later thresholds hold all the same: so much stays. */
TEST(trim_threshold_again)
{
    for (int value = 0; value <= 1 << 30; value = value * 2 + (1 << 20)) {
        do_malloc_trim(0);
        set_trim_threshold(-1);
        touch_and_free(20000, 4000);
        set_trim_threshold(value);
        touch_and_free(20000, 4000);
        for (int hold = 0; hold < 3; hold++) {
            usleep(110000); /* without a threshold it would go back */
            for (int i = 0; i < 100; i++)
                do_free(NEED("malloc", do_malloc(4 * MiB)));
        }
        size_t kept = stats_now().retained;
        size_t whole = value < 70 << 20 ? (size_t)value : 70 * MiB;
        size_t least = whole < 8 * MiB ? 0 : whole - 8 * MiB; /* these may take the place of some */
        CHECK(kept >= least && kept <= (size_t)value + BEYOND,
              "retained with %d bytes, and idle: expected as many, found %zu", value, kept);
    }
    set_trim_threshold(32 << 20);
}

TEST(parameters)
{
    static const struct {
        const char *name;
        int parameter, value, expected;
    } calls[] = {
        {"M_MXFAST 0", M_MXFAST, 0, 1},
        {"M_MXFAST 160", M_MXFAST, 160, 1},
        {"M_MXFAST 161", M_MXFAST, 161, 0},
        {"M_TOP_PAD", M_TOP_PAD, 65536, 1},
        {"M_MMAP_THRESHOLD 1 MiB", M_MMAP_THRESHOLD, 1 << 20, 1},
        {"M_MMAP_THRESHOLD 33 MiB", M_MMAP_THRESHOLD, 33 << 20, 0},
        {"M_MMAP_MAX -1", M_MMAP_MAX, -1, 0},
        {"M_CHECK_ACTION 3", M_CHECK_ACTION, 3, 1},
        {"M_CHECK_ACTION 1", M_CHECK_ACTION, 1, 0},
        {"M_PERTURB 0", M_PERTURB, 0, 1},
        {"M_PERTURB 85", M_PERTURB, 85, 0},
        {"M_ARENA_TEST 2", M_ARENA_TEST, 2, 1},
        {"M_ARENA_MAX 0", M_ARENA_MAX, 0, 0},
        {"M_ARENA_MAX 1", M_ARENA_MAX, 1, 1},
        {"M_NLBLKS", 2, 100, 0},
        {"parameter 77", 77, 1, 0},
        {"parameter -77", -77, 1, 0},
    };
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        CHECK_SIZE(calls[i].name, (size_t)do_mallopt(calls[i].parameter, calls[i].value),
                   (size_t)calls[i].expected);
}

/* Text for test_malloc_info.py: blocks whose number and size it knows. */
/* Some pages of slabs in use have gone back. */
static int print_info(void)
{
    enum { THIN = 500, KEPT_OF = 10 };
    void *thin[THIN], *small[1000], *huge;
    for (int i = 0; i < THIN; i++)
        thin[i] = memset(NEED("malloc", do_malloc(3000)), 1, 3000);
    for (int i = 0; i < THIN; i++)
        if (i % KEPT_OF != 0)
            do_free(thin[i]);
    do_malloc_trim(0);
    for (int i = 0; i < 1000; i++)
        small[i] = NEED("malloc", do_malloc(2048));
    huge = NEED("malloc", do_malloc(16 * MiB));
    int result = do_malloc_info(0, stdout);
    for (int i = 0; i < 1000; i++)
        do_free(small[i]);
    do_free(huge);
    for (int i = 0; i < THIN; i += KEPT_OF)
        do_free(thin[i]);
    return result;
}

int main(int count, char **arguments)
{
    if (count > 1 && strcmp(arguments[1], "print-info") == 0)
        return print_info();
    return tests_main("glibc");
}

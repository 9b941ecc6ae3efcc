/* hakmem_profile_start, _stop and _write: what is written agrees with what is allocated, and the
 * program is served as well as without. The test sets HAKMEM_PROFILE_RATE to 4 KiB,
 * without a limit of samples. */
#include "check.h"
#include "stats.h"

#include <fcntl.h>
#include <hakmem/hakmem.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define RATE (4 * KiB)

struct profile {
    double live_blocks, live, blocks, bytes; /* of all sites */
    size_t sites, samples;
};

/* What is written, read back. */
static struct profile profile_now(void)
{
    static char text[4 * MiB];
    struct profile found = {0};
    int file = memfd_create("profile", 0);
    CHECK_ERROR("hakmem_profile_write", hakmem_profile_write(file), 0);
    ssize_t length = pread(file, text, sizeof text - 1, 0);
    close(file);
    text[length > 0 ? length : 0] = 0;
    int read = sscanf(text, "heap profile: %lf: %lf [%lf: %lf] @ heapprofile", &found.live_blocks,
                      &found.live, &found.blocks, &found.bytes);
    CHECK(read == 4, "the head of a profile, found '%.60s'", text);
    for (const char *c = text; (c = strstr(c, "# peak")) != NULL; c++) {
        size_t live, total;
        double blocks, bytes;
        read = sscanf(c, "# peak %lf: %lf samples %zu %zu", &blocks, &bytes, &live, &total);
        CHECK(read == 4, "a site's peak, found '%.60s'", c);
        found.sites++;
        found.samples += total;
    }
    CHECK(strstr(text, "\nMAPPED_LIBRARIES:\n") != NULL, "no mappings in the profile");
    return found;
}

/* Of so many bytes in blocks of one size, five standard deviations. */
static double five_sigma(double bytes, double size)
{
    double chance = 1 - exp(-size / RATE);
    return 5 * sqrt(bytes * size * (1 - chance) / chance) + size;
}

static void expect_near(const char *what, size_t size, double found, double expected)
{
    double most = five_sigma(expected, (double)size);
    CHECK(fabs(found - expected) <= most, "%s of blocks of %zu: expected %.0f +- %.0f, found %.0f",
          what, size, expected, most, found);
}

#define BLOCKS 16384

TEST(estimates_are_near)
{
    static void *blocks[BLOCKS];
    static const size_t sizes[] = {16, 100, 1000, 5000, 40000, 300000, 3000000};
    CHECK_ERROR("start", hakmem_profile_start(), 0);
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        size_t size = sizes[k], count = 32 * MiB / size < BLOCKS ? 32 * MiB / size : BLOCKS;
        struct profile before = profile_now();
        for (size_t i = 0; i < count; i++)
            blocks[i] = NEED("malloc", do_malloc(size));
        struct profile full = profile_now();
        expect_near("in use", size, full.live - before.live, (double)(count * size));
        expect_near("allocated", size, full.bytes - before.bytes, (double)(count * size));
        for (size_t i = 0; i < count; i += 2)
            do_free(blocks[i]);
        struct profile half = profile_now();
        expect_near("half in use", size, half.live - before.live, (double)(count / 2 * size));
        for (size_t i = 1; i < count; i += 2)
            do_free(blocks[i]);
        struct profile empty = profile_now();
        CHECK(fabs(empty.live - before.live) < 1, "after all is freed: expected %.0f, found %.0f",
              before.live, empty.live);
        CHECK(empty.samples > before.samples, "no samples of blocks of %zu", size);
    }
    CHECK_ERROR("stop", hakmem_profile_stop(), 0);
    struct profile before = profile_now();
    for (size_t i = 0; i < BLOCKS; i++)
        do_free(NEED("malloc", do_malloc(1000)));
    CHECK(profile_now().bytes == before.bytes,
          "allocated while it is off: expected none, found some");
}

/* Sampled while it was on, freed after it was stopped. */
TEST(a_stopped_profile_sees_frees)
{
    static void *blocks[BLOCKS];
    hakmem_profile_start();
    struct profile before = profile_now();
    for (size_t i = 0; i < BLOCKS; i++)
        blocks[i] = NEED("malloc", do_malloc(1000));
    hakmem_profile_stop();
    expect_near("in use", 1000, profile_now().live - before.live, BLOCKS * 1000);
    for (size_t i = 0; i < BLOCKS; i++)
        do_free(blocks[i]);
    CHECK(fabs(profile_now().live - before.live) < 1, "in use after all was freed");
}

/* Growth in place counts as growth anywhere. */
TEST(growing_blocks_are_seen)
{
    hakmem_profile_start();
    struct profile before = profile_now();
    char *p = NULL;
    for (size_t n = 64 * KiB; n <= 16 * MiB; n += 64 * KiB) {
        p = NEED("realloc", do_realloc(p, n));
        p[n - 1] = 1;
    }
    double grown = profile_now().live - before.live;
    CHECK(grown == 16 * MiB, "a block that grew to 16 MiB: found %.0f", grown);
    do_free(p);
    CHECK(fabs(profile_now().live - before.live) < 1, "in use after the block was freed");
    hakmem_profile_stop();
}

/* ---- threads ---- */

static bool ends;

static void *works(void *argument)
{
    static const size_t sizes[] = {24, 500, 3000, 20000, 70000, 700000};
    unsigned seed = (unsigned)(uintptr_t)argument;
    char *kept[64] = {0};
    size_t length[64];
    for (unsigned i = 0; i < 20000 || !__atomic_load_n(&ends, __ATOMIC_RELAXED); i++) {
        seed = seed * 1103515245 + 12345;
        unsigned slot = seed >> 16 & 63;
        if (kept[slot] != NULL) {
            CHECK_PATTERN(kept[slot], length[slot], slot);
            do_free(kept[slot]);
        }
        length[slot] = sizes[(seed >> 8) % 5 + ((seed >> 8) % 640 == 0)];
        kept[slot] = NEED("malloc", do_malloc(length[slot]));
        pattern_fill(kept[slot], length[slot] < 2000 ? length[slot] : 2000, slot);
        length[slot] = length[slot] < 2000 ? length[slot] : 2000;
    }
    for (unsigned i = 0; i < 64; i++)
        do_free(kept[i]);
    return NULL;
}

static void write_one(void)
{
    CHECK_ERROR("in a child", hakmem_profile_write(memfd_create("child", 0)), 0);
}

#define SWITCHES 10000

TEST(it_is_switched_while_threads_work)
{
    pthread_t threads[4];
    __atomic_store_n(&ends, false, __ATOMIC_RELAXED);
    threads_start(threads, 4, works);
    for (unsigned i = 0; i < SWITCHES; i++) {
        CHECK_ERROR("start", hakmem_profile_start(), 0);
        if (i % 100 == 0)
            in_child(write_one);
        CHECK_ERROR("stop", hakmem_profile_stop(), 0);
    }
    __atomic_store_n(&ends, true, __ATOMIC_RELAXED);
    threads_join(threads, 4);
    CHECK_SIZE("hakmem_check", (size_t)hakmem_check(), 0);
}

static void *takes_few(void *unused)
{
    for (size_t n = 16; n <= 640; n += 16)
        do_free(NEED("malloc", do_malloc(n)));
    return unused;
}

/* Blocks that lay ahead of a thread go to the others when it ends. The first thread, and the one
 * that gives memory back, may leave something of libc's. */
TEST(threads_that_end_leave_no_blocks)
{
    pthread_t threads[1];
    hakmem_profile_start();
    threads_start(threads, 1, takes_few);
    threads_join(threads, 1);
    size_t before = stats_now().program;
    for (unsigned i = 0; i < 20; i++) {
        threads_start(threads, 1, takes_few);
        threads_join(threads, 1);
    }
    size_t after = stats_now().program;
    hakmem_profile_stop();
    CHECK(after <= before + 4 * KiB, "in use after 20 threads: expected %zu, found %zu", before,
          after);
}

/* ---- misuse ---- */

static void free_one_of_64_twice(void *size)
{
    void *blocks[64];
    hakmem_profile_start();
    for (unsigned i = 0; i < 64; i++)
        blocks[i] = do_malloc((size_t)size);
    for (unsigned i = 0; i < 64; i++)
        do_free(blocks[i]);
    do_free(blocks[0]);
}

TEST(frees_twice)
{
    static const size_t sizes[] = {4000, 30000, 100000, 1500000, 3000000};
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++)
        CHECK_ABORTS(free_one_of_64_twice, (void *)sizes[k], "");
}

TEST(errors_of_writing)
{
    CHECK_ERROR("a closed descriptor", hakmem_profile_write(-1), EBADF);
    int full = open("/dev/full", 1);
    if (full >= 0)
        CHECK_ERROR("a full disk", hakmem_profile_write(full), ENOSPC);
    int ends_of[2];
    CHECK_ERROR("pipe", pipe(ends_of), 0);
    close(ends_of[0]);
    CHECK_ERROR("a pipe that nobody reads", hakmem_profile_write(ends_of[1]), EPIPE);
    close(ends_of[1]);
    close(full);
}

int main(void) { return tests_main("profile"); }

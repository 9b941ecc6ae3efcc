/* What is kept of large and huge blocks, by whom and for how long: each case went wrong once. */
#include "../api/stats.h"
#include "../stress/statm.h"
#include "trap.h"

#include <malloc.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define N 200

static void rest(void)
{
    struct timespec time = {0, 100000000};
    nanosleep(&time, NULL);
}

static void take_and_free(size_t n, size_t count)
{
    static void *blocks[N];
    for (size_t i = 0; i < count; i++)
        blocks[i] = memset(NEED("malloc", malloc(n)), 1, n);
    for (size_t i = 0; i < count; i++)
        free(blocks[i]);
}

static pthread_barrier_t step;

static void *sleeper(void *unused)
{
    for (size_t n = 300 * KiB; n < 2 * MiB; n += 100 * KiB)
        take_and_free(n, 10);
    pthread_barrier_wait(&step);
    pthread_barrier_wait(&step);
    return unused;
}

/* Nobody takes from the stacks of a thread that sleeps. */
TEST_IN_CHILD(sleeping_thread_keeps_one_large_block)
{
    pthread_barrier_init(&step, NULL, 2);
    size_t before = stats_now().thread_caches;
    pthread_t thread = started(sleeper, NULL);
    pthread_barrier_wait(&step);
    size_t more = stats_now().thread_caches - before;
    CHECK(more <= 2 * MiB + 512 * KiB, "caches of a sleeping thread: expected 2.5 MiB, found %zu",
          more);
    pthread_barrier_wait(&step);
    pthread_join(thread, NULL);
}

/* What the stacks of large blocks hold counts as kept: sizes of one class after the other. A class
 * has up to a quarter more than was asked for, and up to a quarter beside what was in use is kept.
 */
TEST_IN_CHILD(sizes_that_shift)
{
    size_t before = statm_read().resident, most = 0;
    for (int round = 0; round < 3; round++)
        for (size_t n = 320 * KiB; n <= 2 * MiB; n += 64 * KiB) {
            take_and_free(n, 40 * MiB / n);
            size_t now = statm_read().resident;
            most = now > before + most ? now - before : most;
        }
    CHECK(most <= 40 * MiB * 5 / 4 * 5 / 4 + 2 * MiB,
          "40 MiB in changing sizes: most resident %zu KiB", most / KiB);
}

/* As a heap grows, stacks give up what they hold of sizes that the program has left behind.
 */
TEST_IN_CHILD(strings_that_lengthen)
{
    enum { STRINGS = 20000 };
    static char *strings[STRINGS];
    for (size_t n = 16; n <= 1024; n += 16)
        for (size_t i = 0; i < STRINGS; i++) {
            char *longer = memset(NEED("malloc", malloc(n)), 1, n);
            free(strings[i]);
            strings[i] = longer;
        }
    struct hakmem_stats stats = stats_now();
    CHECK(stats.thread_caches <= stats.program / 16, "%zu KiB in use, and in stacks %zu KiB",
          stats.program / KiB, stats.thread_caches / KiB);
    for (size_t i = 0; i < STRINGS; i++)
        free(strings[i]);
}

TEST_IN_CHILD(no_threshold_holds_through_rests)
{
    mallopt(M_TRIM_THRESHOLD, -1);
    take_and_free(200000, N);
    size_t before = stats_now().retained;
    for (int i = 0; i < 4; i++) {
        rest();
        take_and_free(1000, N);
    }
    size_t after = stats_now().retained;
    CHECK(before > 30 * MiB && after >= before - MiB, "retained with no threshold: %zu, then %zu",
          before, after);
}

TEST_IN_CHILD(every_free_checked_gives_back)
{
    mallopt(M_TRIM_THRESHOLD, -1);
    take_and_free(500000, N);
    size_t before = stats_now().retained;
    mallopt(M_TRIM_THRESHOLD, 32 << 20);
    hakmem_check_frees(1);
    size_t after = stats_now().retained;
    CHECK(after < before / 10, "retained before hakmem_check_frees(1) and after: %zu, %zu", before,
          after);
    take_and_free(500000, N);
    for (int i = 0; i < 6; i++) {
        rest();
        take_and_free(500000, N / 4);
        take_and_free(1000, N);
    }
    size_t kept = stats_now().retained;
    hakmem_check_frees(0);
    CHECK(kept < 60 * MiB, "retained of 100 MB while every free is checked: %zu", kept);
}

static size_t mappings(void)
{
    size_t lines = 0;
    FILE *file = fopen("/proc/self/maps", "r");
    for (int c; file != NULL && (c = fgetc(file)) != EOF;)
        lines += c == '\n';
    if (file != NULL)
        fclose(file);
    return lines;
}

TEST_IN_CHILD(aligned_blocks_have_no_mapping_each)
{
    static void *blocks[4000];
    size_t before = mappings();
    for (int i = 0; i < 4000; i++) {
        blocks[i] = NEED("aligned_alloc", aligned_alloc(128 * KiB, 1000));
        CHECK((uintptr_t)blocks[i] % (128 * KiB) == 0, "aligned_alloc: found %p", blocks[i]);
    }
    size_t more = mappings() - before;
    CHECK(more < 1000, "mappings for 4000 aligned blocks: %zu", more);
    for (int i = 0; i < 4000; i++)
        free(blocks[i]);
}

/* A block may come from a stack of the next class. */
TEST_IN_CHILD(longer_blocks_grow_where_they_are)
{
    for (int i = 0; i < 20; i++) {
        free(NEED("malloc", malloc(1200 * KiB)));
        char *p = memset(NEED("malloc", malloc(900 * KiB)), 7, 900 * KiB);
        char *q = NEED("realloc", realloc(p, 1000 * KiB));
        CHECK(q[0] == 7 && q[900 * KiB - 1] == 7, "content after realloc");
        CHECK(malloc_usable_size(q) >= 1000 * KiB, "usable size after realloc");
        free(q);
    }
}

/* Each call below is served by the stack of blocks of 64 bytes. */
static size_t rss_after_quiet_calls(void)
{
    rest();
    rest();
    for (int i = 0; i < 500; i++) {
        void *volatile p = NEED("malloc", malloc(64));
        free(p);
    }
    return statm_read().resident;
}

TEST_IN_CHILD(quiet_calls_give_back_holes)
{
    enum { COUNT = 20000, STAYS = 10 };
    static void *blocks[COUNT];
    take_and_free(64, N);
    for (int i = 0; i < COUNT; i++)
        blocks[i] = memset(NEED("malloc", malloc(4000)), 1, 4000);
    size_t full = statm_read().resident;
    for (int i = 0; i < COUNT; i++)
        if (i % STAYS != 0)
            free(blocks[i]);
    size_t after = rss_after_quiet_calls();
    CHECK(after < full / 4,
          "80 MB, a tenth of it still in use: expected a quarter of %zu, found %zu", full, after);
}

/* Fewer frees than close the stacks: the next that find one full give back. */
TEST_IN_CHILD(half_comes_back_after_more_frees)
{
    enum { COUNT = 20000 };
    static void *blocks[COUNT];
    for (int i = 0; i < COUNT; i++)
        blocks[i] = memset(NEED("malloc", malloc(4000)), 1, 4000);
    size_t full = statm_read().resident;
    for (int i = 0; i < COUNT / 2; i++)
        free(blocks[i]);
    rest();
    take_and_free(64, N);
    size_t after = rss_after_quiet_calls();
    CHECK(after < full * 2 / 3, "80 MB, half of it freed: expected two thirds of %zu, found %zu",
          full, after);
}

TEST_IN_CHILD(quiet_calls_give_back_huge_blocks)
{
    take_and_free(64, N);
    take_and_free(20000000, 5);
    size_t after = rss_after_quiet_calls();
    CHECK(after < 40 * MiB, "100 MB freed: expected less than 40 MiB resident, found %zu", after);
}

/* What lies in the stacks goes, too, and no block is longer than what its free may give back. */
static void after_the_last_free(size_t n, size_t count)
{
    take_and_free(64, N);
    size_t before = statm_read().resident;
    take_and_free(n, count);
    size_t after = statm_read().resident;
    CHECK(after < before + 5 * MiB, "%zu blocks of %zu bytes freed: %zu KiB more than before",
          count, n, (after - before) / KiB);
}

TEST_IN_CHILD(last_free_of_large_blocks) { after_the_last_free(MiB, 60); }
TEST_IN_CHILD(last_free_of_the_largest) { after_the_last_free(2000 * KiB, 100); }

/* Without a pause, and with calls between that give nothing to look at. More than one call gives
 * back: what goes back must not pass for what the program takes again. */
TEST_IN_CHILD(calls_without_a_pause_give_back_all)
{
    take_and_free(64, N);
    take_and_free(30 * MiB, 10);
    size_t most = 300 * MiB / 16;
    time_t end = time(NULL) + 100;
    while (statm_read().resident > most && time(NULL) < end)
        for (int i = 0; i < 10000; i++) {
            void *volatile p = NEED("malloc", malloc(64));
            free(p);
            free(NULL);
        }
    size_t now = statm_read().resident;
    CHECK(now <= most, "300 MiB freed: expected at most %zu resident, found %zu", most, now);
}

/* Frees and takes again, then less, then only small calls. What was wanted again and again stays,
 * but not for ever: work pays what it cost. */
TEST_IN_CHILD(less_than_usual_comes_back)
{
    take_and_free(64, N);
    for (int i = 0; i < 3; i++)
        take_and_free(20 * MiB, 10);
    take_and_free(20 * MiB, 5);
    time_t end = time(NULL) + 100;
    while (statm_read().resident >= 100 * MiB && time(NULL) < end)
        for (int i = 0; i < 50; i++)
            take_and_free(10000, N);
    size_t now = statm_read().resident;
    CHECK(now < 100 * MiB, "200 MiB freed, then 100: found %zu resident", now);
}

static long faults_so_far(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_minflt;
}

static long milliseconds_so_far(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* A little more of one kind, then of another, again and again: what goes back for the one is soon
 * wanted by the other, and is little, however often that is: an eighth of the pages, and what time
 * pays for, of which there is much on a busy machine (LAW_WORK_MS, 32 pages a millisecond). */
TEST_IN_CHILD(kinds_that_alternate_come_to_rest)
{
    enum { LIVE = 300, PART = 6 * MiB, SMALLER = 200 * KiB, ROUNDS = 400, LAST = 100 };
    static void *live[LIVE];
    for (int i = 0; i < LIVE; i++)
        live[i] = memset(NEED("malloc", malloc(80 * KiB)), 1, 80 * KiB);
    take_and_free(40 * MiB, 1); /* what once was much is no reason to learn nothing later */
    long before = 0, began = 0;
    for (int i = 0; i < ROUNDS; i++) {
        if (i == ROUNDS - LAST) {
            before = faults_so_far();
            began = milliseconds_so_far();
        }
        take_and_free(PART, 1);
        take_and_free(SMALLER, PART / SMALLER);
    }
    long faults = (faults_so_far() - before) / LAST;
    long paid = 64 * (milliseconds_so_far() - began) / LAST;
    CHECK(faults < (long)(PART / 4096 / 4) + paid, "page faults a round: %ld of %d pages, %ld paid",
          faults, 2 * PART / 4096, paid);
    for (int i = 0; i < LIVE; i++)
        free(live[i]);
}

int main(void) { return tests_main("kept"); }

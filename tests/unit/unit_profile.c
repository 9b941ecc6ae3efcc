/* The heap profile's arithmetic, against what its formulas say: how far it is to the next sample,
 * what a sample stands for, how the rate follows a program, and what the samples say of rounding.
 * Marks beside samples. No clock. */
#include "unit.h"

#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#include "base/memory.h"
#include "base/policy.h"
#include "base/text.h"
#include "base/watch.h"
#include "front/cache.h"
#include "front/owners.h"
#include "front/stacks.h"
#include "hakmem/hakmem.h"
#include "life/life.h"
#include "life/profiling.h"
#include "os/lock.h"
#include "profile/rate.h"
#include "profile/samples.h"
#include "sheet/profile.h"

#define NEAR(found, expected, most) EXPECT(fabs((found) - (expected)) <= (most))

static void weights_are_exact(void)
{
    for (double x = 1e-6; x < 1e3; x *= 1.37) {
        const size_t rate = (size_t)1 << 30, bytes = (size_t)(x * (double)rate) + 1;
        const double expected = 1 / -expm1(-(double)bytes / (double)rate);
        NEAR(rate_weight(bytes, rate), expected, 1e-9 * expected);
    }
}

/* The mean distance, and how often it is one block, within six standard errors. What is cut off is
 * as often as the formula says. */
static void distances_are_geometric(void)
{
    static const double chances[] = {0.9999, 0.5, 0.1, 0.01, 0.001};
    enum { DRAWS = 200000 };
    for (unsigned k = 0; k < sizeof chances / sizeof *chances; k++) {
        const double p = chances[k];
        const size_t rate = (size_t)1 << 20;
        const size_t bytes = (size_t)(-log1p(-p) * (double)rate + 0.5);
        uint64_t random = next_random();
        double ones = 0, sum = 0, within = 0, beyond = 0;
        for (unsigned i = 0; i < DRAWS; i++) {
            const uint32_t gap = rate_gap(&random, bytes, rate);
            EXPECT(gap >= 1 && gap <= GAP_MOST + 1);
            ones += gap == 1;
            beyond += gap > GAP_MOST;
            within += gap <= GAP_MOST;
            sum += gap <= GAP_MOST ? gap : 0;
        }
        const double cut = pow(1 - p, GAP_MOST);
        NEAR(ones, DRAWS * p, 6 * sqrt(DRAWS * p * (1 - p)) + 1);
        NEAR(beyond, DRAWS * cut, 6 * sqrt(DRAWS * cut * (1 - cut)) + 1);
        const double mean = 1 / p - GAP_MOST * cut / (1 - cut);
        NEAR(sum / within, mean, 6 * sqrt((1 - p) / (p * p) / within));
    }
}

static void at_rate_1_every_block_is_a_sample(void)
{
    uint64_t random = next_random();
    for (unsigned i = 0; i < 1000; i++)
        EXPECT_EQUAL(rate_gap(&random, 8 + i, RATE_EVERY), 1);
    EXPECT(rate_weight(8, RATE_EVERY) == 1);
}

static void generators_differ(void)
{
    uint64_t a = rate_random(), b = rate_random();
    EXPECT(a != b);
    unsigned same = 0;
    for (unsigned i = 0; i < 1000; i++)
        same += rate_gap(&a, 1000, 1000000) == rate_gap(&b, 1000, 1000000);
    EXPECT(same < 20);
}

/* A program that allocates so many bytes a second, for so many seconds from *now on; the samples of
 * the last one. */
static double samples_with(size_t depth, double bytes_a_second, size_t seconds, size_t *now)
{
    double due = 0, last = 0;
    for (size_t ms = 0; ms < seconds * 1000; ms++, ++*now) {
        rate_look(*now);
        due += bytes_a_second / 1000 / (double)rate_now();
        for (; due >= 1; due--) {
            rate_count(*now, depth);
            last += ms >= (seconds - 1) * 1000;
        }
    }
    return last;
}

static double samples_of(double bytes_a_second, size_t seconds, size_t *now)
{
    return samples_with(0, bytes_a_second, seconds, now);
}

static void the_rate_follows_the_program(void)
{
    static const size_t limits[] = {5, 50, 500, 5000};
    size_t now = 12345;
    policy.profile_rate = 64 * KiB;
    for (unsigned k = 0; k < sizeof limits / sizeof *limits; k++) {
        const double limit = (double)limits[k], exact = (double)policy.profile_rate;
        policy.profile_samples = limits[k];
        /* A hundred times more than the limit: about as many samples as that says. */
        const double many = samples_of(100 * limit * exact, 30, &now);
        EXPECT(many <= 2 * limit + 10 && many >= limit / 8 - 1);
        EXPECT(rate_now() > policy.profile_rate);
        /* Then a tenth of it: all that the option asks for, after some seconds. */
        const double few = samples_of(limit / 10 * exact, 20, &now);
        EXPECT_EQUAL(rate_now(), policy.profile_rate);
        NEAR(few, limit / 10, limit / 20 + 1);
    }
    policy.profile_samples = 800; /* of deep stacks an eighth */
    const double deep = samples_with(56, 1e10, 30, &now);
    EXPECT(deep <= 2 * 100 + 10 && deep >= 100 / 8 - 1);
    samples_of(0, 20, &now);
    policy.profile_samples = 0; /* no limit */
    samples_of(1e10, 2, &now);
    EXPECT_EQUAL(rate_now(), policy.profile_rate);
}

/* Many times a sample of the same blocks: the estimates lie around the truth as their errors say.
 * Each time half of the samples are freed again, and some are resized, as if they had never been
 * anything else. */
static void the_rounding_is_estimated(void)
{
    enum { BLOCKS = 4000, TRIALS = 300 };
    static size_t asked[BLOCKS], block[BLOCKS];
    static char addresses[2 * BLOCKS][16];
    const size_t rate = 16 * KiB;
    const struct origin from = {.name = ""};
    double requested = 0, whole = 0, squares = 0, sum = 0;
    for (unsigned i = 0; i < BLOCKS; i++) {
        asked[i] = 1 + next_random() % (i % 100 == 0 ? 100000 : 2000);
        block[i] = round_up(asked[i], (size_t)16 << i % 5);
        requested += (double)asked[i];
        whole += (double)block[i];
    }
    hakmem_free(hakmem_malloc(1)); /* the process's start */
    lock_take(&cacheless_lock);
    EXPECT(samples_start());
    for (unsigned trial = 0; trial < TRIALS; trial++) {
        for (unsigned i = 0; i < 2 * BLOCKS; i++) {
            const size_t n = asked[i / 2], b = block[i / 2];
            const double weight = rate_weight(b, rate);
            if ((double)(next_random() >> 11) * 0x1p-53 * weight < 1)
                EXPECT(samples_add(addresses[i], i % 3 == 0 ? 1 : n, b, weight, &from));
            if (i % 3 == 0)
                samples_resize(addresses[i], n, 0);
        }
        for (unsigned i = 0; i < 2 * BLOCKS; i += 2)
            samples_forget(addresses[i]);
        const struct requested found = requested_from(watch_profile.fill);
        EXPECT(found.samples > 100 && found.error > 0 && found.error < 0.1);
        NEAR(found.blocks, whole, 0.5 * whole);
        const double z = (found.share - requested / whole) / found.error;
        sum += z;
        squares += z * z;
        for (unsigned i = 1; i < 2 * BLOCKS; i += 2)
            samples_forget(addresses[i]);
        EXPECT_EQUAL(requested_from(watch_profile.fill).samples, 0);
    }
    lock_release(&cacheless_lock);
    NEAR(sum / TRIALS, 0, 6 / sqrt(TRIALS));
    NEAR(sqrt(squares / TRIALS), 1, 0.25); /* six standard errors */
}

static const struct site *site_named(const char *name)
{
    const struct site *site = NULL;
    do
        site = samples_site_after(site);
    while (site != NULL && (site->name_bytes != text_length(name) ||
                            memcmp(site->frames + site->depth, name, site->name_bytes) != 0));
    EXPECT(site != NULL);
    return site;
}

/* Each of two windows has its own peak and count: the process's, and the one since samples_watch.
 * So has each site. */
static void peaks_are_exact(void)
{
    static const struct origin from = {.name = "peak", .depth = 0};
    static char at[4];
    EXPECT(lock_enter(&cacheless_lock));
    EXPECT(!samples_watched());
    const struct course before = samples_course();
    for (unsigned i = 0; i < 3; i++)
        EXPECT(samples_add(&at[i], 1000000, 1000000, 1, &from));
    samples_forget(&at[0]);
    EXPECT_EQUAL(samples_course().most, 3000000);
    EXPECT_EQUAL(samples_course().blocks - before.blocks, 3);
    samples_watch();
    EXPECT_EQUAL(samples_course().most, 2000000);
    EXPECT(samples_add(&at[3], 500000, 500000, 1, &from));
    samples_resize(&at[3], 700000, 700000);
    for (unsigned i = 1; i < 4; i++)
        samples_forget(&at[i]);
    EXPECT_EQUAL(samples_course().most, 2700000);
    EXPECT_EQUAL(samples_course().blocks, 1);
    EXPECT_EQUAL(site_named("peak")->peak.bytes, 3000000);
    EXPECT_EQUAL(site_named("peak")->lately.bytes, 2700000);
    samples_fork_child();
    EXPECT_EQUAL(samples_course().most, 0);
    lock_release(&cacheless_lock);
}

/* So many that the table grows: each is found again, once. */
static void many_samples_are_found(void)
{
    enum { MANY = 100000 };
    static const struct origin from = {.name = "many", .depth = 0};
    EXPECT(lock_enter(&cacheless_lock));
    const struct fill *fill = watch_profile.fill;
    const uint64_t before = fill->samples;
    for (size_t i = 1; i <= MANY; i++)
        EXPECT(samples_add((void *)(i << 4), 100, 112, 1, &from));
    EXPECT_EQUAL(fill->samples, before + MANY);
    for (size_t i = 1; i <= MANY; i++)
        EXPECT(samples_forget((void *)(i << 4)));
    EXPECT(!samples_forget((void *)((size_t)MANY << 4)));
    EXPECT_EQUAL(fill->samples, before);
    lock_release(&cacheless_lock);
}

static void a_free_during_a_fork_is_seen(void)
{
    static const struct origin from = {.name = "fork", .depth = 0};
    const size_t n = 50 * MiB;
    void *p = hakmem_malloc(n);
    EXPECT(lock_enter(&cacheless_lock));
    EXPECT(samples_add(p, n, n, 1, &from));
    lock_release(&cacheless_lock);
    fork_prepare();
    EXPECT_EQUAL(deferred_put(p).what, MISUSE_NONE);
    fork_parent();
    EXPECT(lock_enter(&cacheless_lock));
    EXPECT(!samples_forget(p));
    lock_release(&cacheless_lock);
}

/* Nothing that is read of another process is believed. */
static void forged_sums_are_no_estimate(void)
{
    static const double numbers[] = {0, 1, -1, 1e300, -1e300, 1e-300, 1e20, NAN, INFINITY};
    enum { NUMBERS = sizeof numbers / sizeof *numbers };
    const struct fill possible = {100, 900, 1000, 5e5, 5e5, 6e5};
    EXPECT_EQUAL(requested_from(&possible).samples, 100);
    for (unsigned i = 0; i < 5 * NUMBERS * NUMBERS; i++) {
        struct fill fill = possible;
        double *const fields[] = {&fill.requested, &fill.blocks, &fill.nn, &fill.nb, &fill.bb};
        *fields[i % 5] = numbers[i / 5 % NUMBERS];
        *fields[i / 7 % 5] = numbers[i / 5 / NUMBERS];
        const struct requested found = requested_from(&fill);
        EXPECT(found.samples == 0 || (found.share >= 0 && found.share <= 1 && found.error >= 0 &&
                                      found.error <= 1 && found.blocks < 1e40));
    }
    EXPECT_EQUAL(requested_from(&(struct fill){1, 900, 1000, 0, 0, 0}).samples, 0);
}

/* As a fork's child finds them of a thread that was in the middle of a pop. */
static void what_lies_ahead_of_a_stopped_thread(void)
{
    static struct sampler sampler;
    static struct cache cache = {.sampler = &sampler};
    void **blocks;
    ahead_close(&cache);
    for (unsigned cls = 0; cls < AHEAD_CLASSES; cls++) {
        EXPECT(ahead_used(&cache, cls, &blocks) == 0);
        STEP_DOWN(cache.ahead[cls].top);
        EXPECT(ahead_used(&cache, cls, &blocks) == 0);
        cache.ahead[cls].top = sampler.ahead[cls] + AHEAD_MOST;
        EXPECT(ahead_used(&cache, cls, &blocks) == AHEAD_MOST);
    }
}

enum { MARKED = 2000 };

static void *allocates(void *unused)
{
    for (unsigned i = 0; i < MARKED; i++)
        hakmem_free(hakmem_malloc(MiB));
    return unused;
}

static void *reads_marks(void *unused)
{
    struct watch_mark mark;
    uint64_t count = 0;
    while (count < MARKED)
        if (mark_read(0, &mark)) {
            EXPECT(mark.count >= count && mark.in_use < 2 * MiB && text_same(mark.name, "busy"));
            count = mark.count;
        }
    return unused;
}

/* While one thread's blocks are sampled, and another reads the marks; for ThreadSanitizer, too. */
static void marks_are_set_beside_samples(void)
{
    pthread_t threads[2];
    struct watch_mark mark;
    EXPECT(!mark_read(0, &mark));
    EXPECT_EQUAL(hakmem_profile_start(), 0);
    EXPECT_EQUAL(pthread_create(&threads[0], NULL, allocates, NULL), 0);
    EXPECT_EQUAL(pthread_create(&threads[1], NULL, reads_marks, NULL), 0);
    for (unsigned i = 0; i < MARKED; i++)
        hakmem_mark("busy");
    for (unsigned i = 0; i < 2; i++)
        EXPECT_EQUAL(pthread_join(threads[i], NULL), 0);
    EXPECT(mark_read(0, &mark) && !mark_read(1, &mark) && !mark_read(MARKS_MOST, &mark));
    EXPECT_EQUAL(mark.count, MARKED);
    EXPECT(2 * samples_course().blocks > MARKED);
}

int main(void)
{
    EXPECT(profile_switch(true));
    what_lies_ahead_of_a_stopped_thread();
    weights_are_exact();
    distances_are_geometric();
    at_rate_1_every_block_is_a_sample();
    generators_differ();
    the_rate_follows_the_program();
    peaks_are_exact();
    the_rounding_is_estimated();
    many_samples_are_found();
    a_free_during_a_fork_is_seen();
    forged_sums_are_no_estimate();
    marks_are_set_beside_samples();
    return 0;
}

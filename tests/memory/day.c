/* A server's days, one after another: does resident memory rise from day to day while live memory
 * does not?
 *
 * In each cycle (a day) live memory grows from `--low` to `--high` and falls again. Most operations
 * replace a random block. There are four kinds of blocks, whose sizes shift in waves; six hours
 * apart, 80% of one kind are freed at once. Some blocks live for days. With several threads, each
 * has a part of the blocks, and hands some over. Every block's content is checked when it is freed.
 *
 * All of it depends on counts of operations, never on time. Memory is read at the end of each hour
 * (a 24th of a cycle). Prints a line for each cycle, then the trends. README.md has the options.
 * Exit status: 1 if a ratio rose by more than it may. */
#include "resident.h"
#include "support.h"
#include "trend.h"

#include <inttypes.h>
#include <malloc.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#define HOURS 24
#define KINDS 4
/* Sizes repeat after so many cycles, in which they have one wave more. Only cycles that are so far
 * apart can be compared. The first of them are left out of the trend. */
#define PERIOD 3
#define CYCLES_MOST 10000
#define THREADS_MOST 64
#define TICK 1000          /* operations from one shift of sizes and of the goal to the next */
#define LASTING_CYCLES 2.0 /* mean life of a block that lives for days */
#define MAIL 256

enum { AT_LOW, AT_HIGH, MEAN, RATIOS };
static const char *const ratio_names[RATIOS] = {"at the low", "at the high", "mean of the day"};

static struct {
    uint64_t cycles, seconds, threads, seed, operations, low, high, leak, info, huge_pages;
    uint64_t most[RATIOS]; /* percent that it may rise by; 0: any */
    const char *in_force;
} options = {
    .cycles = 12,
    .threads = 1,
    .seed = 1,
    .operations = 20000000,
    .low = 40,
    .high = 200,
    .huge_pages = 1,
};

static const struct known_option known[] = {
    {"--cycles", &options.cycles, NULL},
    {"--seconds", &options.seconds, NULL},
    {"--threads", &options.threads, NULL},
    {"--seed", &options.seed, NULL},
    {"--operations", &options.operations, NULL},
    {"--low", &options.low, NULL},
    {"--high", &options.high, NULL},
    {"--leak", &options.leak, NULL},
    {"--info", &options.info, NULL},
    {"--huge-pages", &options.huge_pages, NULL},
    {"--most-low", &options.most[AT_LOW], NULL},
    {"--most-high", &options.most[AT_HIGH], NULL},
    {"--most-mean", &options.most[MEAN], NULL},
    {"--in-force", NULL, &options.in_force},
    {NULL, NULL, NULL},
};

/* The compiler may not leave out what only the allocator notices. */
static void *(*volatile do_malloc)(size_t) = malloc;
static void (*volatile do_free)(void *) = free;

/* A block's first word: its size, kind << 16, serial number << 20. The others follow from this word
 * and the block's address. */
typedef uint64_t *block;

struct worker {
    unsigned number;
    struct randomness random;
    uint64_t made;
    block *blocks, *lasting;
    size_t count, lasting_count, room, live, goal;
    double means[KINDS];
};

static struct worker workers[THREADS_MOST];
static _Atomic(block) mail[MAIL]; /* from thread to thread */
static pthread_barrier_t hour_ends;
static size_t cycles; /* complete; written between two barriers, as is the next */
static bool over;
static double start;

/* ---- blocks ---- */

static size_t size_of(block b) { return b[0] & 0xffff; }
static unsigned kind_of(block b) { return b[0] >> 16 & 0xf; }
static uint64_t content_of(block b) { return mix64(b[0] ^ (uintptr_t)b); }

static block block_make(struct worker *me, unsigned kind)
{
    double wide = (double)(random_next(&me->random) >> 11) * 0x1p-52; /* 0 to 2 */
    size_t words = (size_t)(me->means[kind] * exp2(wide - 1)) / 8;
    words = words < 2 ? 2 : words;
    block made = do_malloc(words * 8);
    if (made == NULL)
        fail("no memory for a block of %zu bytes", words * 8);
    made[0] = words * 8 | (uint64_t)kind << 16 | ++me->made << 20;
    uint64_t content = content_of(made);
    for (size_t i = 1; i < words; i++)
        made[i] = content + i;
    return made;
}

static void block_end(block b)
{
    uint64_t content = content_of(b), wrong = size_of(b) < 16 || size_of(b) > 8 * KiB;
    for (size_t i = 1; i < size_of(b) / 8 && wrong == 0; i++)
        wrong = b[i] ^ (content + i);
    if (wrong != 0)
        fail("block %p of %zu bytes, kind %u: its content has changed", (void *)b, size_of(b),
             kind_of(b));
    do_free(b);
}

static void drop(struct worker *me, size_t at)
{
    block b = me->blocks[at];
    me->blocks[at] = me->blocks[--me->count];
    me->live -= size_of(b);
    block_end(b);
}

/* A new block; one in eight is left for another thread, and what lay there is taken instead. */
static void add(struct worker *me)
{
    uint64_t chance = random_next(&me->random);
    block b = block_make(me, chance % KINDS);
    if (options.threads > 1 && (chance >> 8) % 8 == 0)
        b = atomic_exchange(&mail[(chance >> 16) % MAIL], b);
    if (b == NULL)
        return;
    if (me->count == me->room)
        fail("more than %zu blocks in a thread", me->room);
    me->live += size_of(b);
    me->blocks[me->count++] = b;
}

/* ---- a day ---- */

/* How much is to live now, and what sizes new blocks have. */
static void shift(struct worker *me, double now)
{
    double grown = (1 - cos(2 * M_PI * now)) / 2;
    double goal = (double)options.low + (double)(options.high - options.low) * grown;
    me->goal = (size_t)(goal * (double)MiB / (double)options.threads);
    double wave = now * (PERIOD + 1) / PERIOD;
    for (int kind = 0; kind < KINDS; kind++) /* 32 B to 4 KiB; sizes are half to twice that */
        me->means[kind] = 362 * exp2(3.5 * sin(2 * M_PI * (wave + (double)kind / KINDS)));
}

static void operate(struct worker *me)
{
    uint64_t chance = random_next(&me->random);
    bool one_more = me->live < me->goal && chance % 8 == 0; /* grows, but not at once */
    bool one_less = me->live > me->goal + 8 * KiB;
    if (!one_more && me->count > 0)
        drop(me, (chance >> 8) % me->count);
    if (!one_less)
        add(me);
}

static void replace_lasting(struct worker *me, size_t at)
{
    if (me->lasting[at] != NULL) {
        me->live -= size_of(me->lasting[at]);
        block_end(me->lasting[at]);
    }
    me->lasting[at] = block_make(me, random_next(&me->random) % KINDS);
    me->live += size_of(me->lasting[at]);
}

static void delete_most(struct worker *me, unsigned kind)
{
    for (size_t i = me->count; i-- > 0;)
        if (kind_of(me->blocks[i]) == kind && random_next(&me->random) % 5 != 0)
            drop(me, i);
}

static void live_an_hour(struct worker *me, size_t cycle, unsigned hour)
{
    if (hour % 6 == 3)
        delete_most(me, hour / 6);
    size_t each = options.operations / HOURS / options.threads;
    double lasting_each = (double)me->lasting_count / LASTING_CYCLES / HOURS, due = 0;
    for (size_t i = 0; i < each; i++) {
        if (i % TICK == 0)
            shift(me, (double)cycle + (hour + (double)i / (double)each) / HOURS);
        operate(me);
        for (due += lasting_each / (double)each; due >= 1; due--)
            replace_lasting(me, random_next(&me->random) % me->lasting_count);
    }
    if (me->number == 0) /* to try whether a rise is noticed */
        for (size_t lost = 0; lost < options.leak / HOURS;)
            lost += size_of(block_make(me, hour % KINDS));
}

/* ---- what is measured ---- */

struct moment {
    double live, resident; /* MiB */
};

static size_t baseline;

static struct moment look(void)
{
    size_t live = 0;
    for (unsigned i = 0; i < options.threads; i++)
        live += workers[i].live;
    for (int i = 0; i < MAIL; i++)
        live += mail[i] != NULL ? size_of(mail[i]) : 0;
    return (struct moment){(double)live / MiB, (double)(resident_of(0).all - baseline) / MiB};
}

static double ratios[RATIOS][CYCLES_MOST];

static void print_cycle(size_t cycle, const struct moment *hours)
{
    struct moment high = hours[HOURS / 2 - 1], low = hours[HOURS - 1];
    double mean = 0;
    for (int i = 0; i < HOURS; i++)
        mean += hours[i].resident / hours[i].live / HOURS;
    ratios[AT_LOW][cycle] = low.resident / low.live;
    ratios[AT_HIGH][cycle] = high.resident / high.live;
    ratios[MEAN][cycle] = mean;
    printf("cycle %4zu  %6.0f s  high %6.1f live %6.1f resident %.4f  "
           "low %6.1f live %6.1f resident %.4f  mean %.4f\n",
           cycle + 1, seconds_now() - start, high.live, high.resident, ratios[AT_HIGH][cycle],
           low.live, low.resident, ratios[AT_LOW][cycle], mean);
    fflush(stdout);
}

/* Thread 0 looks while the others wait. */
static void *live_on(void *worker)
{
    struct worker *me = worker;
    struct moment hours[HOURS];
    shift(me, 0);
    for (size_t i = 0; i < me->lasting_count; i++)
        replace_lasting(me, i);
    while (!over) {
        for (unsigned hour = 0; hour < HOURS; hour++) {
            live_an_hour(me, cycles, hour);
            pthread_barrier_wait(&hour_ends);
            if (me->number == 0)
                hours[hour] = look();
            if (me->number == 0 && hour == HOURS - 1) {
                print_cycle(cycles++, hours);
                if (options.info > 0 && cycles % options.info == 0)
                    malloc_info(0, stderr);
                over = cycles == CYCLES_MOST ||
                       (options.seconds > 0 ? seconds_now() - start >= options.seconds
                                            : cycles >= options.cycles);
            }
            pthread_barrier_wait(&hour_ends);
        }
    }
    return NULL;
}

static void set_up(struct worker *me, unsigned number)
{
    me->number = number;
    me->random = random_start(options.seed, number, 0);
    me->room = options.high * MiB / 128 / options.threads;
    me->blocks = pages_from_kernel(me->room * sizeof *me->blocks);
    me->lasting_count = options.low * 4096 / 40 / options.threads;
    me->lasting = pages_from_kernel(me->lasting_count * sizeof *me->lasting);
    memset(me->blocks, 1, me->room * sizeof *me->blocks); /* resident from the start */
    memset(me->lasting, 0, me->lasting_count * sizeof *me->lasting);
}

static bool judged(void)
{
    bool good = true;
    for (int i = 0; i < RATIOS; i++) {
        double rise =
            100 * trend_print(ratio_names[i], ratios[i] + PERIOD, cycles - PERIOD, PERIOD);
        if (options.most[i] == 0 || rise <= (double)options.most[i])
            continue;
        printf("day: resident over live, %s, rose by %.1f%%, expected at most %" PRIu64 "%%\n",
               ratio_names[i], rise, options.most[i]);
        good = false;
    }
    return good;
}

int main(int argc, char **argv)
{
    options_read("day", argc, argv, 1, known);
    if (options.threads < 1 || options.threads > THREADS_MOST)
        fail("day: --threads: 1 to %d", THREADS_MOST);
    if (options.low < 1 || options.high < options.low)
        fail("day: --low: at least 1, and at most --high");
    show_malloc_in_force("day", options.in_force);
    if (options.huge_pages == 0 && prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0) != 0)
        fail("day: huge pages can't be refused");
    start = seconds_now();
    memset(ratios, 0, sizeof ratios);
    for (unsigned i = 0; i < options.threads; i++)
        set_up(&workers[i], i);
    baseline = resident_of(0).all;
    pthread_barrier_init(&hour_ends, NULL, (unsigned)options.threads);
    pthread_t threads[THREADS_MOST];
    for (unsigned i = 1; i < options.threads; i++)
        if (pthread_create(&threads[i], NULL, live_on, &workers[i]) != 0)
            fail("day: no thread");
    live_on(&workers[0]);
    for (unsigned i = 1; i < options.threads; i++)
        pthread_join(threads[i], NULL);
    if (cycles < 3 * PERIOD) {
        printf("fewer than %d cycles: no trend\n", 3 * PERIOD);
        return 0;
    }
    return judged() ? 0 : 1;
}

/* Allocates, frees and says what stays resident afterwards:
 *
 *   comes_back holes      a heap of blocks of which most are freed at random
 *   comes_back sleepers   threads that used the heap, freed all and sleep
 *   comes_back waves      a heap that grows and is freed whole
 *
 * Prints `name=value` lines that memory.py reads; README.md has the options. The program's own
 * arrays, stacks and threads are there before the baseline is taken; sizes are in bytes. Every
 * block is written to whole, and what is kept is checked at the end. */
#include "resident.h"
#include "support.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#define THREADS_MAX 2000
#define STACK_TOUCHED (16 * KiB)

struct block {
    unsigned char *start;
    size_t size;
};

static struct {
    uint64_t bytes, smallest, largest, keep_percent, threads, second_thread, huge_pages, seed,
        seconds, settles_at, settles_percent, patience;
    const char *in_force;
} options = {
    .bytes = 128 * MiB,
    .smallest = 1024,
    .largest = 8192,
    .keep_percent = 10,
    .threads = 1,
    .huge_pages = 1,
    .seed = 1,
    .seconds = 2,
    .patience = 120,
};

/* The compiler may not leave out what only the allocator notices. */
static void *(*volatile do_malloc)(size_t) = malloc;
static void (*volatile do_free)(void *) = free;

static struct block *blocks; /* of all threads, a share each */
static size_t share;         /* blocks of one thread */
static size_t blocks_made[THREADS_MAX];
static pthread_barrier_t step;

/* ---- what is measured ---- */

static size_t baseline, baseline_dirty;
static size_t live; /* bytes of holes' blocks that stay */

static void take_baseline(void)
{
    /* Once before, so that its own stack is touched. */
    resident_of(0);
    struct resident now = resident_of(0);
    baseline = now.all;
    baseline_dirty = now.private_dirty;
}

static void tell(const char *name, long at)
{
    struct resident now = resident_of(0);
    char suffix[24] = "";
    if (at >= 0)
        snprintf(suffix, sizeof suffix, "_%ld", at);
    printf("%s%s=%lld\n", name, suffix, (long long)now.all - (long long)baseline);
    printf("%s_dirty%s=%lld\n", name, suffix,
           (long long)now.private_dirty - (long long)baseline_dirty);
    fflush(stdout);
}

/* On a busy machine a thread that gives memory back may wait long for its turn: how much is there
 * once it is as little as settles_at bytes, or settles_percent of what is live, or as long as
 * patience lasts. */
static void tell_settled(uint64_t seconds)
{
    size_t bound = options.settles_at + live * options.settles_percent / 100;
    while (seconds < options.patience &&
           (long long)resident_of(0).all - (long long)baseline > (long long)bound) {
        struct timespec one = {1, 0};
        nanosleep(&one, NULL);
        seconds++;
    }
    tell("settled", -1);
    printf("settled_seconds=%llu\n", (unsigned long long)seconds);
}

/* At once, and after whole seconds. */
static void tell_after(const char *name)
{
    tell(name, 0);
    for (uint64_t second = 1; second <= options.seconds; second++) {
        struct timespec one = {1, 0};
        nanosleep(&one, NULL);
        tell(name, (long)second);
    }
    if (options.settles_at || options.settles_percent)
        tell_settled(options.seconds);
}

/* ---- blocks ---- */

/* Uniform; between bounds that are far apart each doubling as often, as programs draw sizes. */
static size_t draw_size(struct randomness *random)
{
    uint64_t bits = random_next(random);
    if (options.largest / options.smallest < 1024)
        return options.smallest + (size_t)(bits % (options.largest - options.smallest + 1));
    unsigned doublings = 0;
    while (options.smallest << (doublings + 1) <= options.largest)
        doublings++;
    size_t low = options.smallest << (bits % (doublings + 1));
    size_t high = 2 * low < options.largest ? 2 * low : options.largest;
    return low + (size_t)((bits >> 32) % (high - low + 1));
}

static unsigned char content(const struct block *b)
{
    return (unsigned char)mix64((uintptr_t)b->start + b->size);
}

static size_t make_blocks(struct block *first, size_t most, size_t bytes, struct randomness *random)
{
    size_t sum = 0, n = 0;
    while (sum < bytes) {
        if (n == most)
            fail("the test's own array of %zu blocks is too short", most);
        size_t size = draw_size(random);
        struct block b = {do_malloc(size), size};
        if (b.start == NULL)
            fail("malloc(%zu) gave NULL after %zu bytes", size, sum);
        memset(b.start, content(&b), size);
        first[n++] = b;
        sum += size;
    }
    return n;
}

static void check(const struct block *b)
{
    unsigned char expected = content(b);
    for (size_t i = 0; i < b->size; i++)
        if (b->start[i] != expected)
            fail("block %p of %zu bytes: byte %zu: expected %02x, found %02x", (void *)b->start,
                 b->size, i, expected, b->start[i]);
}

static void free_blocks(struct block *first, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        check(&first[i]);
        do_free(first[i].start);
        first[i].start = NULL;
    }
}

static void shuffle(struct block *first, size_t n, struct randomness *random)
{
    for (size_t i = n; i > 1; i--) {
        size_t other = random_next(random) % i;
        struct block b = first[i - 1];
        first[i - 1] = first[other];
        first[other] = b;
    }
}

/* Pages that exist before the baseline. */
static void *touched_pages(size_t bytes)
{
    void *p = pages_from_kernel(bytes);
    memset(p, 1, bytes);
    return p;
}

static void touch_stack(void)
{
    volatile char stack[STACK_TOUCHED];
    for (size_t i = 0; i < sizeof stack; i += 512)
        stack[i] = 1;
}

static void prepare_blocks(size_t threads, size_t bytes_each)
{
    size_t average = options.largest / options.smallest < 1024
                         ? (options.smallest + options.largest) / 2
                         : options.smallest * 4;
    share = bytes_each / average + bytes_each / average / 4 + 1000;
    blocks = touched_pages(threads * share * sizeof *blocks);
}

static void start_threads(size_t n, void *(*main)(void *))
{
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 256 * KiB);
    for (size_t i = 0; i < n; i++) {
        pthread_t thread;
        if (pthread_create(&thread, &attributes, main, (void *)i) != 0)
            fail("pthread_create failed for thread %zu", i);
    }
}

static void wait_for_all(void) { pthread_barrier_wait(&step); }

/* ---- holes ---- */

static size_t kept_from, all_blocks;

static void holes_make(size_t thread)
{
    struct randomness random = random_start(options.seed, thread, 0);
    blocks_made[thread] =
        make_blocks(&blocks[thread * share], share, options.bytes / options.threads, &random);
}

/* One row of all blocks, those that stay at its end. Mixed, a thread frees what others made. */
static void holes_plan(void)
{
    struct randomness random = random_start(options.seed, THREADS_MAX, 0);
    size_t n = 0;
    for (size_t thread = 0; thread < options.threads; thread++)
        for (size_t i = 0; i < blocks_made[thread]; i++)
            blocks[n++] = blocks[thread * share + i];
    shuffle(blocks, n, &random);
    all_blocks = n;
    kept_from = n - n * options.keep_percent / 100;
    for (size_t i = kept_from; i < n; i++)
        live += blocks[i].size;
}

static void holes_free(size_t thread)
{
    size_t from = kept_from * thread / options.threads;
    size_t to = kept_from * (thread + 1) / options.threads;
    free_blocks(&blocks[from], to - from);
}

static void *holes_thread(void *number)
{
    size_t thread = (size_t)number;
    touch_stack();
    wait_for_all(); /* baseline */
    wait_for_all();
    holes_make(thread);
    wait_for_all(); /* peak, plan */
    wait_for_all();
    holes_free(thread);
    wait_for_all(); /* the last free has returned */
    wait_for_all();
    return NULL;
}

/* A program of one thread gives memory back in calls of its own: here 1,000 of them, each second
 * one a free, after a rest. */
static void rest_and_go_on(void)
{
    struct timespec rest = {0, 200000000};
    nanosleep(&rest, NULL);
    struct randomness random = random_start(options.seed, THREADS_MAX, 1);
    size_t kept = all_blocks - kept_from;
    for (int i = 0; i < 500 && kept > 0; i++) {
        struct block *b = &blocks[kept_from + random_next(&random) % kept];
        size_t size = b->size;
        free_blocks(b, 1);
        *b = (struct block){do_malloc(size), size};
        if (b->start == NULL)
            fail("malloc(%zu) gave NULL", size);
        memset(b->start, content(b), size);
    }
}

static void holes(void)
{
    bool alone = options.threads == 1;
    prepare_blocks(options.threads, options.bytes / options.threads);
    if (alone) {
        take_baseline();
        holes_make(0);
    } else {
        pthread_barrier_init(&step, NULL, (unsigned)options.threads + 1);
        start_threads(options.threads, holes_thread);
        wait_for_all();
        take_baseline();
        wait_for_all();
        wait_for_all();
    }
    tell("peak", -1);
    holes_plan();
    printf("live=%zu\n", live);
    if (alone) {
        holes_free(0);
        tell("freed", -1);
        rest_and_go_on();
    } else {
        wait_for_all();
        wait_for_all();
    }
    tell_after("resident");
    free_blocks(&blocks[kept_from], all_blocks - kept_from);
    tell("empty", -1);
}

/* ---- sleepers ---- */

static void *sleeper(void *number)
{
    size_t thread = (size_t)number;
    struct randomness random = random_start(options.seed, thread, 0);
    struct block *mine = &blocks[thread * share];
    touch_stack();
    wait_for_all(); /* baseline: no heap used yet */
    wait_for_all();
    size_t n = make_blocks(mine, share, options.bytes, &random);
    shuffle(mine, n, &random);
    wait_for_all(); /* peak */
    wait_for_all();
    free_blocks(mine, n);
    wait_for_all(); /* measured while it sleeps here */
    wait_for_all();
    return NULL;
}

static void sleepers(void)
{
    prepare_blocks(options.threads, options.bytes);
    pthread_barrier_init(&step, NULL, (unsigned)options.threads + 1);
    start_threads(options.threads, sleeper);
    wait_for_all();
    take_baseline();
    wait_for_all();
    wait_for_all();
    tell("peak", -1);
    wait_for_all();
    wait_for_all();
    printf("live=0\n");
    tell_after("resident");
}

/* ---- waves ---- */

static void *idle_thread(void *unused)
{
    (void)unused;
    touch_stack();
    do_free(do_malloc(100));
    wait_for_all();
    wait_for_all();
    return NULL;
}

static void waves(void)
{
    struct randomness random = random_start(options.seed, 0, 0);
    prepare_blocks(1, options.bytes);
    if (options.second_thread) {
        pthread_barrier_init(&step, NULL, 2);
        start_threads(1, idle_thread);
        wait_for_all();
    }
    take_baseline();
    size_t n = make_blocks(blocks, share, options.bytes, &random);
    tell("peak", -1);
    printf("live=0\n");
    shuffle(blocks, n, &random);
    free_blocks(blocks, n);
    tell_after("resident");
    /* What came back must not be lost: the second wave fits where the first was. */
    n = make_blocks(blocks, share, options.bytes, &random);
    tell("again", -1);
    free_blocks(blocks, n);
}

static void read_options(int argc, char **argv)
{
    static const struct known_option known[] = {
        {"--bytes", &options.bytes, NULL},
        {"--smallest", &options.smallest, NULL},
        {"--largest", &options.largest, NULL},
        {"--keep-percent", &options.keep_percent, NULL},
        {"--threads", &options.threads, NULL},
        {"--second-thread", &options.second_thread, NULL},
        {"--huge-pages", &options.huge_pages, NULL},
        {"--seed", &options.seed, NULL},
        {"--seconds", &options.seconds, NULL},
        {"--settles-at", &options.settles_at, NULL},
        {"--settles-percent", &options.settles_percent, NULL},
        {"--in-force", NULL, &options.in_force},
        {NULL, NULL, NULL},
    };
    options_read("comes_back", argc, argv, 2, known);
    if (options.threads == 0 || options.threads > THREADS_MAX || options.smallest == 0 ||
        options.smallest > options.largest || options.keep_percent > 100)
        fail("comes_back: --threads must be 1 to %d, --smallest 1 to --largest", THREADS_MAX);
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    read_options(argc, argv);
    watchdog(500);
    if (!options.huge_pages && prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0) != 0)
        fail("PR_SET_THP_DISABLE is refused");
    show_malloc_in_force("comes_back", options.in_force);
    if (strcmp(what, "holes") == 0)
        holes();
    else if (strcmp(what, "sleepers") == 0)
        sleepers();
    else if (strcmp(what, "waves") == 0)
        waves();
    else
        fail("comes_back: first say what: holes, sleepers or waves");
    /* Threads still wait: nothing is left for them to do. */
    fflush(stdout);
    _exit(0);
}

/* The heap check: it finds nothing in any state that work can produce; and if a rule is broken on
 * purpose, it names that rule. */
#include "back/superslabs.h"
#include "front/owners.h"
#include "heap/shards.h"
#include "os/os.h"
#include "unit.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "back/huge.h"
#include "back/meta.h"
#include "back/reserve.h"
#include "back/use.h"
#include "base/policy.h"
#include "front/cache.h"
#include "hakmem/hakmem.h"
#include "heap/slab.h"
#include "heap/transfer.h"
#include "life/life.h"
#include "report/accounts.h"

static struct accounts accounts;

#define RULE_NAME(rule, words) [CHECK_##rule] = #rule,
static const char *const rule_names[] = {CHECK_RULES(RULE_NAME)};

static size_t walk(void)
{
    heap_lock_all();
    size_t breaches = heap_check(&accounts, true);
    heap_unlock_all();
    return breaches;
}

static void expect_whole(const char *after)
{
    if (walk() == 0)
        return;
    fprintf(stderr, "after %s: expected no breach, found %zu:\n", after, accounts.breaches);
    heap_check_report(&accounts);
    exit(1);
}

/* ---- a heap with something of everything ---- */

#define BLOCKS 20000
#define FEW 40

static void *small[BLOCKS], *foreign[BLOCKS], *many[BLOCKS], *slices[FEW], *runs[FEW], *huge[FEW];
static pthread_barrier_t barrier;

/* Stays until the end, so that its cache does. Quiet: it waits. */
static void *other_thread(void *unused)
{
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < BLOCKS; i++)
        hakmem_free(foreign[i]);
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    return unused;
}

static void *filled(void **blocks, size_t count, size_t least, size_t step)
{
    for (size_t i = 0; i < count; i++) {
        blocks[i] = hakmem_malloc(least + next_random() % step);
        EXPECT(blocks[i] != NULL);
    }
    return blocks;
}

static void free_each(void **blocks, size_t count, size_t step)
{
    for (size_t i = 0; i < count; i += step) {
        hakmem_free(blocks[i]);
        blocks[i] = NULL;
    }
}

static void make_heap(void)
{
    filled(small, BLOCKS, 1, 1000);
    filled(foreign, BLOCKS, 40, 60);
    filled(many, BLOCKS, 1000, 4000);
    filled(slices, FEW, 40 * KiB, 200 * KiB);
    filled(runs, FEW, 300 * KiB, 1700 * KiB);
    filled(huge, FEW, 3 * MiB, 5 * MiB);
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    expect_whole("filling");
    free_each(small, BLOCKS, 3);
    free_each(many, BLOCKS, 2);
    free_each(slices, FEW, 2);
    free_each(runs, FEW, 2);
    free_each(huge, FEW, 2);
    expect_whole("freeing some");
    EXPECT_EQUAL(cache_empty(cache_mine).what, MISUSE_NONE);
    expect_whole("emptying the stacks");
    free_each(small + 1, 1000, 3);
    EXPECT(accounts.stats.kept_mappings > 0 && accounts.stats.transfer > 0 &&
           accounts.stats.retained > 0);
    EXPECT(accounts.stats.threads == 2 && accounts.stats.superslabs > 2 &&
           accounts.stats.huge_blocks > 0 && accounts.stats.large_blocks > 0);
}

/* ---- what the walk counts ---- */

static void sums(void)
{
    void *reserved = reserve_take(1000, 1); /* as during a fork */
    EXPECT(reserved != NULL && reserve_parts().used > 0);
    EXPECT_EQUAL(walk(), 0);
    struct accounts before = accounts;
    void *small_block = hakmem_malloc(200);
    void *run = hakmem_malloc(1 * MiB - 100);
    void *mapping = hakmem_malloc(50 * MiB + 1);
    EXPECT_EQUAL(walk(), 0);
    size_t more =
        hakmem_good_size(200) + hakmem_good_size(1 * MiB - 100) + hakmem_good_size(50 * MiB + 1);
    EXPECT_EQUAL(accounts.stats.program, before.stats.program + more);
    EXPECT_EQUAL(accounts.stats.large_blocks, before.stats.large_blocks + 1);
    EXPECT_EQUAL(accounts.stats.huge_blocks, before.stats.huge_blocks + 1);
    hakmem_free(small_block);
    hakmem_free(run);
    hakmem_free(mapping);
    EXPECT_EQUAL(walk(), 0);
    EXPECT_EQUAL(accounts.stats.program, before.stats.program);
    EXPECT_EQUAL(accounts.stats.huge_blocks, before.stats.huge_blocks);
    EXPECT_EQUAL(accounts.stats.large_blocks, before.stats.large_blocks);
    EXPECT_EQUAL(reserve_give(reserved), MISUSE_NONE);
    EXPECT_EQUAL(walk(), 0);
    EXPECT(accounts.stats.program < before.stats.program);
}

/* ---- a thread that ends during a fork ---- */

static void *ends_in_between(void *unused)
{
    hakmem_free(hakmem_malloc(100));
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    return unused;
}

/* The forking thread ends its cache: its blocks go back, and it counts as living no more. What
 * was freed meanwhile without a cache is freed, too, and nothing of the note is left. */
static void a_thread_ends_during_a_fork(void)
{
    pthread_t thread;
    size_t living = caches_living();
    EXPECT_EQUAL(walk(), 0);
    size_t program = accounts.stats.program;
    void *p = hakmem_malloc(100);
    EXPECT(pthread_create(&thread, NULL, ends_in_between, NULL) == 0);
    pthread_barrier_wait(&barrier);
    EXPECT_EQUAL(caches_living(), living + 1);
    fork_prepare();
    pthread_barrier_wait(&barrier);
    pthread_join(thread, NULL);
    EXPECT_EQUAL(deferred_put(p).what, MISUSE_NONE);
    EXPECT_EQUAL(caches_living(), living + 1);
    EXPECT(reserve_parts().used > 0);
    fork_parent();
    EXPECT_EQUAL(caches_living(), living);
    EXPECT_EQUAL(reserve_parts().used, 0);
    expect_whole("a thread's end during a fork");
    EXPECT_EQUAL(accounts.stats.program, program);
}

/* ---- breaking one thing at a time ---- */

static struct {
    void *where;
    char old[8];
    size_t n;
} pokes[64];
static unsigned poke_count;

static void poke(void *where, uint64_t value, size_t n)
{
    EXPECT(poke_count < 64 && n <= 8);
    pokes[poke_count].where = where;
    pokes[poke_count].n = n;
    memcpy(pokes[poke_count++].old, where, n);
    memcpy(where, &value, n);
}

#define POKE(place, value) poke(&(place), (uint64_t)(value), sizeof(place))

static void undo(void)
{
    while (poke_count > 0) {
        poke_count--;
        memcpy(pokes[poke_count].where, pokes[poke_count].old, pokes[poke_count].n);
    }
}

static struct {
    enum check_rule rule;
    void (*breaks)(void);
    void (*mends)(void);
} corruptions[64];
static size_t corruption_count;

static void corruption_add(enum check_rule rule, void (*breaks)(void), void (*mends)(void))
{
    EXPECT(corruption_count < sizeof corruptions / sizeof *corruptions);
    corruptions[corruption_count].rule = rule;
    corruptions[corruption_count].breaks = breaks;
    corruptions[corruption_count++].mends = mends;
}

/* A function that breaks the rule, and the one that mends it. */
#define BREAKS(rule, name, mend)                                \
    static void name##_broken(void);                            \
    __attribute__((constructor)) static void name##_added(void) \
    {                                                           \
        corruption_add(CHECK_##rule, name##_broken, mend);      \
    }                                                           \
    static void name##_broken(void)

static struct bin *bin_of(unsigned cls) { return &cache_mine->bins[BIN_FIRST + cls]; }
static void **base_of(const struct bin *bin)
{
    return cache_mine->cold[bin - cache_mine->bins - BIN_FIRST].base;
}

/* A class whose stack of this thread has some blocks, larger than a grain. */
static struct bin *stack_with_blocks(void)
{
    for (unsigned cls = 2; cls < CLASSES; cls++)
        if (bin_of(cls)->top >= base_of(bin_of(cls)) + 4)
            return bin_of(cls);
    fputs("expected a stack with 4 blocks\n", stderr);
    exit(1);
}

/* A slab of the class in a tree: it has free and taken blocks. */
static struct slab *partial_slab(unsigned cls)
{
    for (unsigned shard = 0; shard < shards_made(); shard++)
        if (shard_partial(shard, cls)->root != NULL)
            return (struct slab *)shard_partial(shard, cls)->root;
    fputs("expected a partial slab\n", stderr);
    exit(1);
}

static struct slab *some_slab(void) { return partial_slab(class_of(700)); }
static struct superslab *home_of(const void *p) { return ((struct slab *)map_owner(p))->home; }
static struct superslab *some_superslab(void) { return home_of(runs[1]); }

static unsigned run_index(void)
{
    return (unsigned)((size_t)((char *)runs[1] - some_superslab()->base) / SLICE);
}

static struct huge *dirty_huge(void)
{
    return list_entry(huge_inside().dirty->next, struct huge, node);
}

static unsigned transfer_class(void)
{
    for (unsigned cls = 0; cls < CLASSES; cls++) {
        uint32_t *count, capacity;
        transfer_inside(cls, &count, &capacity);
        if (*count > 1)
            return cls;
    }
    fputs("expected blocks in a transfer cache\n", stderr);
    exit(1);
}

static int nowhere;
static void *leaked;

static void map_owner_whole(void)
{
    struct slab *slab = leaked;
    map_set(slab->base, 1, BIN_FIRST + slab->cls, slab);
}
BREAKS(MAP_OWNER, map_owner, map_owner_whole)
{
    struct slab *slab = some_slab();
    map_set(slab->base, 1, BIN_FIRST + slab->cls, &nowhere);
    leaked = slab;
}
BREAKS(MAP_BIN, map_bin, map_owner_whole)
{
    struct slab *slab = leaked = some_slab();
    map_set(slab->base, 1, BIN_FIRST + slab->cls + 1, slab);
}
BREAKS(MAP_BASE, map_base, undo) { POKE(some_slab()->base, some_slab()->base + SLICE); }
BREAKS(SUPERSLAB_LISTS, superslab_lists, undo)
{
    struct list *node = superslabs_by_longest[lowest_bit(superslabs_nonempty)].next;
    POKE(node->prev, node);
}
BREAKS(SUPERSLAB_LISTS, superslab_dense, undo)
{
    struct list *node = superslabs_dense.next;
    EXPECT(node != &superslabs_dense);
    POKE(node->prev, node);
}
BREAKS(SUPERSLAB_COUNT, superslab_count, undo) { POKE(superslabs_count, superslabs_count + 1); }
BREAKS(SUPERSLAB_LONGEST, superslab_longest, undo)
{
    POKE(some_superslab()->longest, some_superslab()->longest + 1);
}
BREAKS(SUPERSLAB_NONEMPTY, superslab_nonempty, undo)
{
    POKE(superslabs_nonempty, superslabs_nonempty ^ (uint64_t)1 << 40);
}
BREAKS(SLICES_SHARED, slices_shared, undo)
{
    POKE(some_superslab()->free, some_superslab()->free | (uint64_t)1 << run_index());
}
BREAKS(SLICES_LOST, slices_lost, undo)
{
    for (int i = 0; i < FEW; i++) {
        struct superslab *s = runs[i] != NULL ? home_of(runs[i]) : NULL;
        if (s == NULL || s->free == 0)
            continue;
        POKE(s->free, s->free & (s->free - 1));
        return;
    }
}
BREAKS(SLICES_TOUCHED, slices_touched, undo)
{
    POKE(some_superslab()->touched, some_superslab()->touched ^ (uint64_t)1 << run_index());
}
BREAKS(SLICES_RETAINED, slices_retained, undo) { POKE(use.dirty_slices, use.dirty_slices + 1); }
BREAKS(USE_SLICES, use_slices, undo) { POKE(use.slices, use.slices + SLICE); }
BREAKS(USE_HELD, use_held, undo) { POKE(use.held, use.held + SLICE); }
BREAKS(USE_HUGE, use_huge, undo) { POKE(use.huge, use.huge + SLICE); }
BREAKS(WHOLE_LENGTH, whole_length, undo)
{
    struct slab *slab = map_owner(runs[1]);
    POKE(slab->usable, size_classes[slab->cls].size + 1);
}
BREAKS(SLAB_HOME, slab_home, undo)
{
    struct slab *slab = some_slab();
    POKE(slab->home, home_of(runs[slab->home == home_of(runs[1]) ? FEW - 1 : 1]));
}
BREAKS(SLAB_FREE, slab_free, undo) { POKE(some_slab()->free, some_slab()->free + 1); }
BREAKS(SLAB_SUMMARY, slab_summary, undo) { POKE(some_slab()->summary, some_slab()->summary ^ 1); }
BREAKS(SLAB_BITS, slab_bits, undo)
{
    struct slab *slab = some_slab();
    unsigned blocks = size_classes[slab->cls].blocks;
    EXPECT(blocks % 64 != 0);
    POKE(slab->words[blocks / 64], slab->words[blocks / 64] | (uint64_t)1 << blocks % 64);
}
BREAKS(SLAB_EMPTY, slab_empty, undo)
{
    struct slab *slab = partial_slab(class_of(4000));
    unsigned blocks = size_classes[slab->cls].blocks;
    EXPECT(blocks < 64);
    POKE(slab->words[0], low_bits(blocks));
    POKE(slab->free, blocks);
}
BREAKS(SLAB_ABSENT, slab_absent, undo)
{
    struct slab *slab = some_slab(); /* it has taken blocks in some page */
    POKE(slab->absent, ~(uint64_t)0 >> 48);
}
BREAKS(PARTIAL_TREE, partial_tree, undo) { POKE(some_slab()->node.prev, some_slab()); }
BREAKS(PARTIAL_PLACE, partial_place, undo)
{
    POKE(some_slab()->node.key, some_slab()->node.key - 1);
}
BREAKS(PARTIAL_MISSING, partial_missing, undo)
{
    struct slab *slab = some_slab();
    POKE(shard_partial(slab->shard, slab->cls)->root, 0);
}
BREAKS(PARTIAL_SUMS, partial_sums, undo)
{
    const struct slab *slab = some_slab();
    POKE(shard_begun(slab->shard, slab->cls)->free, 1);
}
BREAKS(SHARD_THREADS, shard_threads, undo) { POKE(*shard_threads(0), *shard_threads(0) + 1); }
BREAKS(CACHE_COUNT, cache_count, undo) { POKE(*caches_count(), 1); }
BREAKS(CACHE_CAPACITY, cache_capacity, undo)
{
    POKE(cache_mine->capacity_bytes, cache_mine->capacity_bytes + 16);
}
BREAKS(CACHE_CAPACITY, cache_weight, undo)
{
    POKE(cache_mine->capacity_weight, cache_mine->capacity_weight + 16);
}
BREAKS(STACK_BOUNDS, stack_bounds, undo)
{
    struct bin *bin = stack_with_blocks();
    POKE(bin->top, base_of(bin) - 2);
}
BREAKS(STACK_TOPMOST, stack_topmost, undo)
{
    struct bin *bin = stack_with_blocks();
    POKE(bin->topmost, bin->top[-1]);
}
BREAKS(STACK_BLOCK, stack_block, undo)
{
    struct bin *bin = stack_with_blocks();
    POKE(base_of(bin)[1], (char *)base_of(bin)[1] + 16);
}
BREAKS(TRANSFER_BOUNDS, transfer_bounds, undo)
{
    uint32_t *count, capacity;
    transfer_inside(transfer_class(), &count, &capacity);
    POKE(*count, capacity + 1);
}
BREAKS(TRANSFER_BLOCK, transfer_block, undo)
{
    uint32_t *count, capacity;
    void **blocks = transfer_inside(transfer_class(), &count, &capacity);
    POKE(blocks[0], runs[1]);
}
BREAKS(BLOCK_FREE, block_free, undo)
{
    struct bin *bin = stack_with_blocks();
    struct slab *slab = map_owner(base_of(bin)[1]);
    size_t number = (size_t)((char *)base_of(bin)[1] - slab->base) / size_classes[slab->cls].size;
    POKE(slab->words[number / 64], slab->words[number / 64] | (uint64_t)1 << number % 64);
}
BREAKS(BLOCK_TWICE, block_twice, undo)
{
    struct bin *bin = stack_with_blocks();
    POKE(base_of(bin)[1], base_of(bin)[2]);
}
BREAKS(HUGE_LENGTH, huge_length, undo)
{
    struct huge *h = map_owner(huge[1]);
    POKE(h->usable, h->length + os_page);
}
BREAKS(KEPT_LENGTH, kept_length, undo) { POKE(dirty_huge()->length, dirty_huge()->length + 1); }
static void kept_mapped_whole(void) { map_clear(((struct huge *)leaked)->base, BIN_HUGE); }
BREAKS(KEPT_MAPPED, kept_mapped, kept_mapped_whole)
{
    leaked = dirty_huge();
    map_set(dirty_huge()->base, 1, BIN_HUGE, dirty_huge());
}
BREAKS(KEPT_BYTES, kept_bytes, undo) { POKE(use.dirty_huge, use.dirty_huge + SLICE); }
BREAKS(RANGES_OVERLAP, ranges_overlap, undo) { POKE(dirty_huge()->base, some_superslab()->base); }
BREAKS(META_FREE, meta_free, undo)
{
    void *piece = meta_take(1000);
    meta_give(piece, 1000);
    poke(piece, (uintptr_t)&nowhere, sizeof(void *));
}
static void meta_sum_whole(void) { meta_give(leaked, 1000); }
BREAKS(META_SUM, meta_sum, meta_sum_whole) { leaked = meta_take(1000); }
static void mapped_sum_whole(void) { os_unmap(leaked, os_page); }
BREAKS(MAPPED_SUM, mapped_sum, mapped_sum_whole) { leaked = os_map(os_page); }

static void locked(void (*change)(void))
{
    heap_lock_all();
    change();
    heap_unlock_all();
}

static void each_rule_is_named(void)
{
    unsigned tried[CHECK_RULE_COUNT] = {0};
    for (size_t i = 0; i < corruption_count; i++) {
        const char *name = rule_names[corruptions[i].rule];
        locked(corruptions[i].breaks);
        walk();
        locked(corruptions[i].mends);
        tried[corruptions[i].rule]++;
        if (accounts.broken[corruptions[i].rule] == 0) {
            fprintf(stderr, "%s broken: expected that the walk names it, found %zu breaches:\n",
                    name, accounts.breaches);
            heap_check_report(&accounts);
            exit(1);
        }
        expect_whole(name);
    }
    for (int rule = 0; rule < CHECK_RULE_COUNT; rule++)
        if (tried[rule] == 0) {
            fprintf(stderr, "%s: expected a corruption that breaks it\n", rule_names[rule]);
            exit(1);
        }
    printf("%d rules, each broken and named\n", CHECK_RULE_COUNT);
}

/* Into `text`: what heap_check_report writes to standard error. */
static void reported(char *text, size_t room)
{
    int ends[2], before = dup(STDERR_FILENO);
    EXPECT(before >= 0 && pipe(ends) == 0 && dup2(ends[1], STDERR_FILENO) >= 0);
    heap_check_report(&accounts);
    dup2(before, STDERR_FILENO);
    close(before);
    close(ends[1]);
    size_t length = 0;
    for (ssize_t got; (got = read(ends[0], text + length, room - 1 - length)) > 0;)
        length += (size_t)got;
    text[length] = '\0';
    close(ends[0]);
}

static void each_breach_has_a_line(void)
{
    static char found[16 * KiB], expected[16 * KiB];
    accounts.breaches = CHECK_BREACHES_KEPT + 1;
    for (unsigned i = 0; i < CHECK_BREACHES_KEPT; i++)
        accounts.first[i] =
            (struct check_breach){CHECK_META_FREE, (void *)(uintptr_t)(4096 + i), 100 + i, 200 + i};
    size_t length = 0;
    for (unsigned i = 0; i < CHECK_BREACHES_KEPT; i++)
        length += (size_t)snprintf(expected + length, sizeof expected - length,
                                   "hakmem: heap check: broken: %s; at %#x expected %u, found %u\n",
                                   "META_FREE: lists of free pieces of metadata are whole",
                                   4096 + i, 100 + i, 200 + i);
    snprintf(expected + length, sizeof expected - length,
             "hakmem: heap check: more is broken, not shown\n");
    reported(found, sizeof found);
    if (strcmp(found, expected) != 0) {
        fprintf(stderr, "expected:\n%sfound:\n%s", expected, found);
        exit(1);
    }
}

int main(void)
{
    each_breach_has_a_line();
    memset(&accounts, 0, sizeof accounts);
    /* What is free stays where it is until the test's end. */
    policy.scavenger = false;
    expect_whole("nothing"); /* before the first call */
    pthread_t thread;
    pthread_barrier_init(&barrier, NULL, 2);
    hakmem_free(hakmem_malloc(1));
    policy.keep_bytes = KEEP_ALL; /* nor by the time of day, however slow the machine is */
    limits.stays = true;
    EXPECT(pthread_create(&thread, NULL, other_thread, NULL) == 0);
    make_heap();
    sums();
    each_rule_is_named();
    pthread_barrier_wait(&barrier);
    pthread_join(thread, NULL);
    expect_whole("a thread's end");
    a_thread_ends_during_a_fork();
    free_each(small, BLOCKS, 1);
    free_each(many, BLOCKS, 1);
    free_each(slices, FEW, 1);
    free_each(runs, FEW, 1);
    free_each(huge, FEW, 1);
    expect_whole("freeing all");
    EXPECT_EQUAL(accounts.stats.program, 0);
    hakmem_purge();
    expect_whole("giving all back");
    EXPECT_EQUAL(accounts.stats.retained + accounts.stats.kept + accounts.stats.superslabs +
                     accounts.stats.thread_caches,
                 0);
    puts("4 passed, 0 failed");
    return 0;
}

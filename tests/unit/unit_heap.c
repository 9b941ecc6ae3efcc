/* Classes, slabs, shards, the transfer cache, a thread's cache. */
#define _GNU_SOURCE
#include "back/superslabs.h"
#include "base/policy.h"
#include "front/owners.h"
#include "front/refill.h"
#include "heap/shards.h"
#include "heap/slab.h"
#include "os/os.h"
#include "unit.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "api/blocks.h"
#include "front/cache.h"
#include "heap/classes.h"
#include "heap/transfer.h"

static void classes(void)
{
    for (size_t n = 0; n <= CLASS_MOST; n++) {
        unsigned cls = class_of(n);
        EXPECT(cls < CLASSES && size_classes[cls].size >= n);
        if (cls > 0)
            EXPECT(size_classes[cls - 1].size < n);
        EXPECT_EQUAL(class_bin_offset(n), (BIN_FIRST + cls) * BIN_BYTES);
    }
    for (size_t n = CLASS_MOST + 1; n <= CLASS_SLICES_MOST; n++) {
        unsigned cls = class_of_slices(n);
        EXPECT(cls < CLASSES && size_classes[cls].size >= n);
        EXPECT(size_classes[cls].blocks == 1 && size_classes[cls].size < n + n / 4 + SLICE);
    }
}

static enum misuse put_one(struct slab *slab, void *p)
{
    enum misuse what;
    size_t put = slab_put(slab, &p, 1, &what);
    EXPECT_EQUAL(put, what == MISUSE_NONE);
    return what;
}

/* What the callers of this floor hold: see os/lock.h. */
static struct lock guard = LOCK(PURGE), of_slab = LOCK(SHARD);

static void one_slab(unsigned cls)
{
    const struct size_class *c = &size_classes[cls];
    static uint64_t room[1 + 4096 / 64 + sizeof(struct slab) / 8];
    EXPECT(slab_bytes(c) <= sizeof room);
    struct slab *slab = (struct slab *)room;
    char *base = (char *)(uintptr_t)0x100000000; /* never touched */
    slab_init(slab, cls, base, NULL);

    static void *blocks[4096 + 1];
    void **end = blocks + c->blocks;
    EXPECT_EQUAL(slab_take(slab, end, c->blocks), c->blocks);
    EXPECT_EQUAL(slab->free, 0);
    EXPECT_EQUAL(slab->summary, 0);
    for (unsigned i = 0; i < c->blocks; i++)
        EXPECT(blocks[i] == base + (size_t)(c->blocks - 1 - i) * c->size);

    /* Every address: a block's start, or not. */
    for (size_t offset = 0; offset < c->slices * SLICE; offset += 8) {
        bool begins = offset % c->size == 0 && offset / c->size < c->blocks;
        EXPECT_EQUAL(slab_check(slab, base + offset), begins ? MISUSE_NONE : MISUSE_INTERIOR);
    }
    /* Back in any order, out again lowest first. */
    for (unsigned i = 0; i < c->blocks; i++) {
        unsigned j = i + (unsigned)(next_random() % (c->blocks - i));
        void *swap = blocks[i];
        blocks[i] = blocks[j];
        blocks[j] = swap;
        EXPECT_EQUAL(put_one(slab, blocks[i]), MISUSE_NONE);
        EXPECT_EQUAL(put_one(slab, blocks[i]), MISUSE_FREE);
        if (c->size > 16)
            EXPECT_EQUAL(put_one(slab, (char *)blocks[i] + 16), MISUSE_INTERIOR);
    }
    EXPECT_EQUAL(slab->free, c->blocks);
    char *last = NULL;
    for (unsigned left = c->blocks; left > 0;) {
        unsigned n = 1 + (unsigned)(next_random() % 100);
        size_t got = slab_take(slab, blocks + n, n);
        EXPECT_EQUAL(got, n < left ? n : left);
        for (size_t i = 0; i < got; i++) {
            EXPECT((char *)blocks[n - 1 - i] > last || last == NULL);
            last = blocks[n - 1 - i];
        }
        left -= (unsigned)got;
    }
    EXPECT_EQUAL(slab_take(slab, blocks + 1, 1), 0);
}

/* Against a look at every block of every page. */
static void free_pages(unsigned cls)
{
    const struct size_class *c = &size_classes[cls];
    static uint64_t room[1 + 4096 / 64 + sizeof(struct slab) / 8];
    struct slab *slab = (struct slab *)room;
    static void *blocks[4096];
    for (unsigned kept = 0; kept <= 3; kept++) {
        slab_init(slab, cls, (void *)(uintptr_t)0x100000000, NULL);
        slab_take(slab, blocks + c->blocks, c->blocks);
        slab->absent = kept == 3 ? next_random() : 0;
        uint64_t expected = ~slab->absent;
        for (unsigned i = 0; i < c->blocks; i++) {
            if (kept > 0 && next_random() % (c->blocks / kept + 1) > 0) {
                EXPECT_EQUAL(put_one(slab, blocks[i]), MISUSE_NONE);
                continue;
            }
            size_t offset = (size_t)((char *)blocks[i] - slab->base);
            for (size_t page = offset / os_page; page * os_page < offset + c->size; page++)
                expected &= ~((uint64_t)1 << page);
        }
        size_t pages = ((size_t)c->blocks * c->size + os_page - 1) / os_page;
        EXPECT_EQUAL(slab_free_pages(slab), expected & low_bits((unsigned)pages));
    }
}

#define BLOCKS 30000

static void one_shard(void)
{
    static void *blocks[BLOCKS];
    size_t before = superslabs_mapped();
    for (unsigned cls = 0; cls < CLASSES; cls += cls >= 63 ? 1 : 9) {
        size_t size = size_classes[cls].size;
        size_t n = size > 1024 ? size > CLASS_MOST ? 50 : 1000 : BLOCKS;
        for (size_t left = n, got; left > 0; left -= got) {
            got = shard_take(0, cls, blocks + left, left);
            EXPECT(got > 0);
        }
        for (size_t i = 0; i < n; i++) {
            unsigned bin = cls < CLASS_SLICES_FIRST ? BIN_FIRST + cls : BIN_WHOLE_FREE;
            EXPECT_EQUAL(map_bin(blocks[i]), bin);
            EXPECT_EQUAL(shards_check(blocks[i]), MISUSE_NONE);
            *(size_t *)blocks[i] = i;
        }
        for (size_t i = 0; i < n; i++)
            EXPECT_EQUAL(*(size_t *)blocks[i], i);
        /* A wrong one in a batch is found; the others go back all the same. */
        void *batch[3] = {blocks[0], blocks[0], blocks[1]};
        struct finding found = shards_put(batch, 3);
        EXPECT_EQUAL(found.what, MISUSE_FREE);
        EXPECT(found.where == blocks[0]);
        found = shards_put(blocks + 2, n - 2);
        EXPECT_EQUAL(found.what, MISUSE_NONE);
        EXPECT_EQUAL(map_bin(blocks[0]), BIN_FOREIGN);
    }
    EXPECT(superslabs_mapped() <= before + 27); /* 50 blocks of 2 MiB, two in each */
}

/* How many shards so many threads get that are there at once. */
static unsigned shards_of(unsigned threads, unsigned most)
{
    unsigned joined[16], in[SHARDS_MOST] = {0}, used = 0;
    unsigned made = shards_made();
    shards_limit(most);
    for (unsigned i = 0; i < threads; i++)
        in[joined[i] = shard_join()]++;
    for (unsigned i = 0; i < SHARDS_MOST; i++)
        used += in[i] > 0;
    for (unsigned i = 0; i < used && made == shards_made(); i++)
        EXPECT(in[i] == threads / used || in[i] == threads / used + 1);
    for (unsigned i = 0; i < threads; i++)
        shard_leave(joined[i]);
    shards_limit(SHARDS_MOST);
    return used;
}

static bool run_on(const cpu_set_t *cpus) { return sched_setaffinity(0, sizeof *cpus, cpus) == 0; }

/* Threads spread over as many shards as there are CPUs, or over the first ones alone. CPUs that
 * the process gets later count. */
static void joining(const cpu_set_t *all)
{
    EXPECT_EQUAL(shards_of(8, 4), 1);
    EXPECT(run_on(all));
    EXPECT_EQUAL(shards_of(8, 4), 1);
    for (unsigned most = 4; most >= 1; most /= 2) {
        unsigned made = shards_of(16, most);
        EXPECT(made == smaller(most, (size_t)CPU_COUNT(all)) || os_cpus() == 1);
    }
}

static void transfer(void)
{
    static void *blocks[100], *out[200];
    for (size_t i = 0; i < 100; i++)
        blocks[i] = (void *)(0x1000 + 16 * i);
    EXPECT_EQUAL(transfer_take(3, out + 200, 200), 0);
    EXPECT_EQUAL(transfer_put(3, blocks, 100), 100);
    EXPECT_EQUAL(transfer_take(3, out + 60, 60), 60);
    EXPECT_EQUAL(transfer_take(3, out + 200, 140), 40);
    uintptr_t sum = 0;
    for (size_t i = 0; i < 60; i++)
        sum += (uintptr_t)out[i];
    for (size_t i = 160; i < 200; i++)
        sum += (uintptr_t)out[i];
    EXPECT_EQUAL(sum, 100 * 0x1000 + 16 * 99 * 50);
    /* Bounded. */
    size_t put = 0, more;
    while ((more = transfer_put(3, blocks, 100)) > 0)
        put += more;
    EXPECT(put * size_classes[3].size <= 1 * MiB);
    while (transfer_take(3, out + 200, 200) > 0)
        ;
}

static size_t taken_of(void **blocks, size_t from, size_t end)
{
    size_t taken = 0;
    for (size_t i = from; i < end; i++)
        taken += shards_check(blocks[i]) == MISUSE_NONE;
    return taken;
}

/* Of what waits, a look gives up those that nobody needed since the last one: the oldest. */
static void idle_in_transfer(void)
{
    static void *blocks[100], *out[100];
    const unsigned cls = 5;
    for (size_t left = 100, got; left > 0; left -= got)
        EXPECT((got = shard_take(0, cls, blocks + left, left)) > 0);
    EXPECT_EQUAL(transfer_put(cls, blocks, 100), 100);
    EXPECT_EQUAL(transfers_decay(false).what, MISUSE_NONE); /* they came since the start */
    EXPECT_EQUAL(taken_of(blocks, 0, 100), 100);
    EXPECT_EQUAL(transfer_take(cls, out + 60, 60), 60);
    EXPECT_EQUAL(transfer_put(cls, blocks + 40, 20), 20);
    EXPECT_EQUAL(transfers_decay(false).what, MISUSE_NONE);
    EXPECT_EQUAL(taken_of(blocks, 0, 40), 0);
    EXPECT_EQUAL(taken_of(blocks, 40, 100), 60);
    EXPECT_EQUAL(transfer_put(cls, blocks + 60, 10), 10);
    EXPECT_EQUAL(transfers_decay(false).what, MISUSE_NONE);
    EXPECT_EQUAL(taken_of(blocks, 40, 60), 0);
    EXPECT(transfer_holds(cls, blocks[60]) && !transfer_holds(cls, blocks[40]));
    EXPECT_EQUAL(transfer_put(cls, blocks + 70, 30), 30);
    EXPECT_EQUAL(transfers_decay(true).what, MISUSE_NONE);
    EXPECT_EQUAL(taken_of(blocks, 40, 100), 0);
    EXPECT_EQUAL(transfer_take(cls, out + 1, 1), 0);
    /* Once it was empty, it still is looked at. */
    EXPECT_EQUAL(shard_take(0, cls, blocks + 1, 1), 1);
    EXPECT_EQUAL(transfer_put(cls, blocks, 1), 1);
    EXPECT_EQUAL(transfers_decay(true).what, MISUSE_NONE);
    EXPECT(shards_check(blocks[0]) != MISUSE_NONE);
}

static enum misuse give_inside(struct cache *cache, unsigned stack, void *p)
{
    lock_take(cache->lock);
    struct finding found = cache_give(cache, stack, p);
    lock_release(cache->lock);
    return found.what;
}

static void *cache_take(struct cache *cache, unsigned cls)
{
    struct finding found = {MISUSE_NONE, NULL};
    void *p;
    if (cache_pop(cache, (BIN_FIRST + cls) * BIN_BYTES, &p))
        return p;
    lock_take(cache->lock);
    p = cache_refill(cache, cls, &found);
    lock_release(cache->lock);
    EXPECT(p != NULL && found.what == MISUSE_NONE);
    block_unseal(p);
    return p;
}

/* Blocks through a cache: each once, however full and empty the stacks become. */
static void one_cache(void)
{
    struct cache *cache = cache_new();
    EXPECT(cache != NULL);
    size_t living = caches_living();
    const unsigned *in_shard = shard_threads(cache->shard), threads = *in_shard;
    static char *held[BLOCKS];
    static unsigned char cls_of[BLOCKS];
    size_t count = 0;
    for (int step = 0; step < 400000; step++) {
        bool grow = (step / 40000) % 2 == 0 ? next_random() % 4 != 0 : next_random() % 4 == 0;
        if (grow && count < BLOCKS) {
            unsigned cls = (unsigned)(next_random() % 30);
            char *p = cache_take(cache, cls);
            EXPECT_EQUAL(map_bin(p), BIN_FIRST + cls);
            memset(p, (int)cls + 1, size_classes[cls].size);
            held[count] = p;
            cls_of[count++] = (unsigned char)cls;
        } else if (count > 0) {
            size_t i = next_random() % count;
            unsigned cls = cls_of[i];
            for (size_t j = 0; j < size_classes[cls].size; j++)
                EXPECT_EQUAL(held[i][j], cls + 1);
            if (!cache_push(cache, held[i])) {
                block_seal(held[i]);
                EXPECT_EQUAL(give_inside(cache, cls, held[i]), MISUSE_NONE);
            }
            EXPECT(!cache_push(cache, held[i])); /* twice in a row */
            EXPECT_EQUAL(give_inside(cache, cls, held[i]), MISUSE_FREE);
            held[i] = held[--count];
            cls_of[i] = cls_of[count];
        }
    }
    for (size_t i = 0; i < count; i++)
        if (!cache_push(cache, held[i]))
            EXPECT_EQUAL(give_inside(cache, cls_of[i], held[i]), MISUSE_NONE);
    EXPECT_EQUAL(cache_delete(cache).what, MISUSE_NONE);
    EXPECT_EQUAL(caches_living(), living - 1);
    EXPECT_EQUAL(*in_shard, threads - 1);
    /* The next thread's is the same, and new. */
    EXPECT(cache->most_taken > 0 && cache->refills > 0);
    EXPECT(cache_new() == cache);
    EXPECT(cache->taken == 0 && cache->most_taken == 0 && cache->began == cache->refills);
    /* Also if it rested: the first refill ends that. */
    lock_take(cache->lock);
    cache->ebb = 1;
    cache_close(cache, CLOSED_RESTS, true);
    lock_release(cache->lock);
    EXPECT_EQUAL(cache_delete(cache).what, MISUSE_NONE);
    EXPECT(cache_new() == cache);
    struct finding found = {MISUSE_NONE, NULL};
    lock_take(cache->lock);
    EXPECT(cache_rests(cache));
    void *p = cache_refill(cache, 0, &found);
    EXPECT(p != NULL && !cache_rests(cache));
    EXPECT_EQUAL(shards_put(&p, 1).what, MISUSE_NONE);
    lock_release(cache->lock);
    EXPECT_EQUAL(cache_delete(cache).what, MISUSE_NONE);
    lock_take(&guard);
    for (size_t i = 0; i < count; i++)
        EXPECT(shards_check(held[i]) != MISUSE_NONE);
    lock_release(&guard);
}

static void cache_free(struct cache *cache, void *p)
{
    if (cache_push(cache, p))
        return;
    block_seal(p);
    EXPECT_EQUAL(give_inside(cache, bin_stack(map_bin(p)), p), MISUSE_NONE);
}

/* While a class compacts, blocks of slabs that are mostly free go to the second stack. It is empty
 * when the class does so no more. */
static void second_stack(void)
{
    enum { COUNT = 64 * 1024, KEPT_OF = 6 };
    static void *held[2 * COUNT];
    const unsigned cls = class_of(256), second = CLASSES + cls;
    struct cache *cache = cache_new();
    EXPECT(cache != NULL && policy.compact);
    const struct bin *bin = &cache->bins[BIN_FIRST + second];
    for (size_t i = 0; i < COUNT; i++)
        held[i] = cache_take(cache, cls);
    EXPECT(!shard_compacts(cache->shard, cls));
    for (size_t i = 0; i < COUNT; i++)
        if (i % KEPT_OF != 0)
            cache_free(cache, held[i]);
    EXPECT(shard_compacts(cache->shard, cls));
    char *p = held[COUNT / 2 / KEPT_OF * KEPT_OF];
    EXPECT_EQUAL(map_bin(p), BIN_FIRST + second);
    size_t used = stack_used(bin, &cache->cold[second]);
    cache_free(cache, p);
    EXPECT(!cache_push(cache, p)); /* twice */
    EXPECT_EQUAL(stack_used(bin, &cache->cold[second]), used + 1);
    EXPECT(block_is_free(cls, p));

    size_t taken = 0;
    for (; shard_compacts(cache->shard, cls) && taken < COUNT; taken++)
        held[COUNT + taken] = cache_take(cache, cls);
    EXPECT(!shard_compacts(cache->shard, cls));
    EXPECT_EQUAL(stack_used(bin, &cache->cold[second]), 0);
    for (size_t i = 0; i < taken; i++)
        cache_free(cache, held[COUNT + i]);
    for (size_t i = 0; i < COUNT; i += KEPT_OF)
        if (held[i] != p)
            cache_free(cache, held[i]);
    EXPECT_EQUAL(cache_delete(cache).what, MISUSE_NONE);
}

int main(void)
{
    cpu_set_t all, first;
    EXPECT_EQUAL(sched_getaffinity(0, sizeof all, &all), 0);
    CPU_ZERO(&first);
    for (size_t i = 0; CPU_COUNT(&first) == 0; i++)
        if (CPU_ISSET(i, &all))
            CPU_SET(i, &first);
    EXPECT(run_on(&first));
    const struct os_given given = os_ask();
    os_start(&given);
    map_start();
    slots_start(42);
    shards_start();
    lock_take(&guard);
    classes();
    lock_take(&of_slab);
    for (unsigned cls = 0; cls < CLASSES; cls++)
        one_slab(cls);
    for (unsigned cls = 0; cls < CLASS_LARGE; cls++)
        free_pages(cls);
    lock_release(&of_slab);
    joining(&all);
    one_shard();
    transfer();
    idle_in_transfer();
    lock_release(&guard);
    one_cache();
    second_stack();
    puts("10 passed, 0 failed");
    return 0;
}

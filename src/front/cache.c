#include "front/cache.h"

#include <string.h>

#include "back/meta.h"
#include "base/atomic.h"
#include "base/policy.h"
#include "heap/shard.h"
#include "heap/transfer.h"

/* Never written: its stacks are empty, and full. */
#define CLOSED_BIN                            \
    {                                         \
        (void *)WINDOW_BASE, NULL, NULL, NULL \
    }
#define CLOSED_CACHE                              \
    {                                             \
        .bins = { [0 ... BINS - 1] = CLOSED_BIN } \
    }

const struct cache cache_none = CLOSED_CACHE;
const struct cache cache_gone = CLOSED_CACHE;

__thread struct cache *cache_mine = (struct cache *)&cache_none;

static struct lock caches_lock;
static struct list caches = {&caches, &caches}; /* of living threads; lock: caches */
static struct cache *unused;                    /* of threads that ended; lock: caches */
static struct cache *orphans;                   /* of threads that a fork left behind; atomic */
static size_t living;                           /* atomic */

size_t caches_living(void) { return load_relaxed(&living); }

static size_t stack_used(const struct bin *bin) { return (size_t)(bin->top - bin->base); }

static void stack_set_top(struct bin *bin, void **top)
{
    bin->top = top;
    bin->topmost = *top;
}

/* ---- capacities ---- */

/* Free may push up to the capacity without the door. Not on blocks outside the window: what it
 * compares with must be inside. */
static void stack_open(struct bin *bin, const struct depot *depot)
{
    bin->limit = unlikely(load_relaxed(&window_left)) ? NULL : bin->base + depot->capacity;
}

static void stack_set_capacity(struct cache *cache, unsigned cls, size_t capacity)
{
    struct depot *depot = &cache->depots[cls];
    struct bin *bin = &cache->bins[BIN_FIRST + cls];
    size_t size = size_classes[cls].size;
    cache->capacity_bytes += (capacity - depot->capacity) * size;
    depot->capacity = (uint32_t)capacity;
    stack_open(bin, depot);
}

/* Doubles a stack's capacity within the bounds, on a larger array where the old one is too small.
 * The first array made is 5/2 of the one in the cache, so that arrays are 5 * 2^n words: arrays at
 * equal distances modulo 4 KiB would make the stores of one class block the loads of another (25
 * cycles a pair of random sizes, 32 with powers of two). */
static void stack_grow(struct cache *cache, unsigned cls)
{
    struct depot *depot = &cache->depots[cls];
    struct bin *bin = &cache->bins[BIN_FIRST + cls];
    size_t size = size_classes[cls].size;
    size_t words = (size_t)depot->capacity + 1;
    size_t capacity = (words > size_classes[cls].first + 1u ? words * 2 : words * 5 / 2) - 1;
    if (capacity > policy.stack_blocks ||
        (capacity * size > policy.stack_bytes && capacity > policy.stack_least) ||
        cache->capacity_bytes + (capacity - depot->capacity) * size > policy.thread_bytes)
        return;
    if (capacity > depot->room) {
        void **array = meta_take((capacity + 1) * sizeof *array);
        if (array == NULL)
            return;
        size_t used = stack_used(bin);
        memcpy(array, bin->base, (used + 1) * sizeof *array);
        if (depot->room > size_classes[cls].first)
            meta_give(bin->base, (depot->room + 1) * sizeof *array);
        bin->base = array;
        depot->room = (uint32_t)capacity;
        bin->top = array + used;
    }
    stack_set_capacity(cache, cls, capacity);
}

/* What overflows belongs to others: a large stack would only keep it from them. */
static void stack_shrink(struct cache *cache, unsigned cls)
{
    struct depot *depot = &cache->depots[cls];
    size_t capacity = policy.stack_foreign_bytes / size_classes[cls].size;
    if (capacity < size_classes[cls].first)
        capacity = size_classes[cls].first;
    if (capacity < depot->capacity)
        stack_set_capacity(cache, cls, capacity);
}

/* Refills in a row, or flushes: the stack is too small for what the thread does. */
static unsigned depot_count(struct depot *depot, bool flushing)
{
    if (depot->flushing != flushing) {
        depot->flushing = flushing;
        depot->streak = 0;
    }
    return ++depot->streak;
}

/* Empty stacks on their first arrays, which lie in the cache itself. */
static void cache_init(struct cache *cache)
{
    cache->capacity_bytes = 0;
    for (unsigned i = 0; i < BIN_FIRST; i++)
        cache->bins[i] = (struct bin)CLOSED_BIN;
    void **place = cache->first;
    for (unsigned cls = 0; cls < CLASSES; cls++) {
        unsigned first = size_classes[cls].first;
        struct depot *depot = &cache->depots[cls];
        *depot = (struct depot){.room = first};
        *place = window_base;
        cache->bins[BIN_FIRST + cls] = (struct bin){window_base, place, NULL, place};
        stack_set_capacity(cache, cls, first);
        place += first + 1;
    }
}

/* Frees the n lowest of a stack: those that were pushed first. */
static struct finding stack_put_oldest(struct cache *cache, unsigned cls, size_t n,
                                       bool by_transfer)
{
    struct bin *bin = &cache->bins[BIN_FIRST + cls];
    void **oldest = bin->base + 1;
    size_t used = stack_used(bin);
    size_t sent = by_transfer ? transfer_put(cls, oldest, n) : 0;
    struct finding found = shards_put(oldest + sent, n - sent);
    memmove(oldest, oldest + n, (used - n) * sizeof(void *));
    stack_set_top(bin, bin->top - n);
    return found;
}

/* Frees all that a cache holds, which no thread uses any more; the first wrong block found. */
static struct finding cache_drain(struct cache *cache)
{
    struct finding found = {MISUSE_NONE, NULL};
    for (unsigned cls = 0; cls < CLASSES; cls++) {
        const struct depot *depot = &cache->depots[cls];
        const struct bin *bin = &cache->bins[BIN_FIRST + cls];
        size_t used = stack_used(bin);
        if (used > 0) {
            struct finding one = stack_put_oldest(cache, cls, used, false);
            if (found.what == MISUSE_NONE)
                found = one;
        }
        if (depot->room > size_classes[cls].first)
            meta_give(bin->base, (depot->room + 1) * sizeof(void *));
    }
    cache_init(cache);
    return found;
}

static void cache_keep_unused(struct cache *cache)
{
    cache->next = unused;
    unused = cache;
}

/* Frees what one thread held that a fork left behind. A block that was just on its way to or from
 * the program is in the stack and free at once; it is passed over. */
static void orphan_take_in(void)
{
    lock_take(&caches_lock);
    struct cache *orphan = orphans;
    if (orphan != NULL)
        store_relaxed(&orphans, orphan->next);
    lock_release(&caches_lock);
    if (orphan == NULL)
        return;
    cache_drain(orphan);
    lock_take(&caches_lock);
    cache_keep_unused(orphan);
    lock_release(&caches_lock);
}

/* ---- refill and flush ---- */

SLOW void *cache_refill(struct cache *cache, unsigned cls)
{
    struct bin *bin = &cache->bins[BIN_FIRST + cls];
    struct depot *depot = &cache->depots[cls];
    if (unlikely(load_relaxed(&orphans) != NULL))
        orphan_take_in();
    lock_take(&cache->lock);
    cache->refills++;
    if (depot_count(depot, false) > 1)
        stack_grow(cache, cls);

    /* Half, so that as many frees find room. */
    size_t n = (depot->capacity + 1) / 2;
    void **end = bin->base + 1 + n;
    size_t got = transfer_take(cls, end, n);
    if (got == 0)
        got = shard_take(cache->shard, cls, end, n);
    void *p = NULL;
    if (got > 0) {
        stack_open(bin, depot);
        if (got < n)
            memmove(bin->base + 1, end - got, got * sizeof(void *));
        p = bin->base[got];
        stack_set_top(bin, bin->base + got - 1);
    }
    lock_release(&cache->lock);
    return p;
}

static struct finding cache_flush(struct cache *cache, unsigned cls)
{
    struct depot *depot = &cache->depots[cls];
    struct bin *bin = &cache->bins[BIN_FIRST + cls];
    lock_take(&cache->lock);
    cache->flushes++;
    size_t used = stack_used(bin);
    unsigned streak = depot_count(depot, true);
    /* Alone, a thread finds its own blocks sooner, and in order, by their bits. */
    bool shared = caches_living() > 1;
    bool foreign = shared && shard_of(bin->base[1]) != cache->shard;
    if (foreign)
        stack_shrink(cache, cls);
    else if (streak > 1)
        stack_grow(cache, cls);
    struct finding found = {MISUSE_NONE, NULL};
    size_t keep = depot->capacity / 2;
    if (used > keep)
        found = stack_put_oldest(cache, cls, used - keep, foreign || (shared && streak > 2));
    lock_release(&cache->lock);
    return found;
}

SLOW struct finding cache_give(struct cache *cache, unsigned cls, void *p)
{
    if (cache->bins[BIN_FIRST + cls].topmost == p)
        return (struct finding){MISUSE_FREE, p};
    struct finding found = cache_flush(cache, cls);
    cache_push_any(cache, cls, p);
    return found;
}

/* ---- caches come and go ---- */

COLD struct cache *cache_new(void)
{
    lock_take(&caches_lock);
    struct cache *cache = unused;
    if (cache != NULL)
        unused = cache->next;
    lock_release(&caches_lock);
    if (cache == NULL)
        cache = meta_take(sizeof *cache);
    if (cache == NULL)
        return NULL;

    cache_init(cache);
    cache->lock = (struct lock){0};
    cache->refills = cache->flushes = 0;
    cache->shard = shard_join();
    lock_take(&caches_lock);
    list_push(&caches, &cache->node);
    add_relaxed(&living, 1);
    lock_release(&caches_lock);
    return cache;
}

COLD struct finding cache_delete(struct cache *cache)
{
    lock_take(&cache->lock);
    struct finding found = cache_drain(cache);
    lock_release(&cache->lock);
    /* A fork until here finds an empty cache. */
    lock_take(&caches_lock);
    shard_leave(cache->shard);
    list_remove(&cache->node);
    sub_relaxed(&living, 1);
    cache_keep_unused(cache);
    lock_release(&caches_lock);
    return found;
}

/* ---- fork ---- */

void caches_fork_lock(void)
{
    lock_take(&caches_lock);
    for (struct list *node = caches.next; node != &caches; node = node->next)
        lock_take(&list_entry(node, struct cache, node)->lock);
}

void caches_fork_unlock_parent(void)
{
    for (struct list *node = caches.next; node != &caches; node = node->next)
        lock_release(&list_entry(node, struct cache, node)->lock);
    lock_release(&caches_lock);
}

void caches_fork_unlock_child(const struct cache *mine)
{
    for (struct list *node = caches.next, *next; node != &caches; node = next) {
        struct cache *cache = list_entry(node, struct cache, node);
        next = node->next;
        lock_release(&cache->lock);
        if (cache == mine)
            continue;
        list_remove(node);
        shard_leave(cache->shard);
        sub_relaxed(&living, 1);
        cache->next = orphans;
        store_relaxed(&orphans, cache);
    }
    lock_release(&caches_lock);
}

#include "front/owners.h"

#include "back/huge.h"
#include "back/map.h"
#include "back/meta.h"
#include "back/reserve.h"
#include "back/slices.h"
#include "base/atomic.h"
#include "base/memory.h"
#include "front/cache.h"
#include "front/hardened.h"
#include "front/stacks.h"
#include "heap/shards.h"
#include "os/lock.h"
#include "profile/guarded.h"
#include "profile/samples.h"

/* New memory is zero: nobody's yet. */
static struct cache *cache_make(void)
{
    ASSERT(lock_held(&cacheless_lock));
    struct cache *cache = meta_take(sizeof *cache);
    if (cache == NULL)
        return NULL;
    cache->generation = 0;
    cache->mine = NULL;
    cache->sampler = NULL;
    cache->hardened = NULL;
    cache->stays_until = cache->ebb = cache->ages = 0;
    cache->refills = cache->flushes = cache->unclocked = cache->untold = cache->large_told =
        cache->outflow = 0;
    cache->hinted = 0;
    for (unsigned i = 0; i < BINS; i++) {
        bin_close(&cache->bins[i]);
        cache->bins[i].inverse = 0;
    }
    cache->closings = 0;
    cache_settle(cache, true);
    ahead_close(cache);
    words_clear(cache->cold, sizeof cache->cold);
    words_clear(cache->begun, sizeof cache->begun);
    if (arrays_start(cache)) {
        cache_reset(cache);
        if (registry_enter(cache))
            return cache;
    }
    meta_give(cache, sizeof *cache);
    return NULL;
}

/* The closer sets the flag before it takes this cache's lock. */
static void cache_show(struct cache *cache)
{
    cache->shut = false;
    if ((__atomic_load_n(&closings, __ATOMIC_SEQ_CST) & CLOSED_CHECKED) == 0)
        store_relaxed(&cache_mine, cache);
}

COLD struct cache *cache_new(void)
{
    if (!lock_enter(&cacheless_lock))
        return NULL;
    struct cache *cache = registry_take();
    if (cache == NULL)
        cache = cache_make();
    if (cache != NULL) {
        lock_take(cache->lock);
        cache->asking = false;
        cache->fresh = true;
        cache->taken = cache->most_taken = 0;
        cache->began = cache->refills;
        if (cache->sampler != NULL) /* the stack of another thread */
            cache->sampler->tape.stack_low = cache->sampler->tape.stack_top = 0;
        cache_show(cache);
        lock_release(cache->lock);
    }
    lock_release(&cacheless_lock);
    return cache;
}

COLD void cache_ends_with_thread(struct cache *cache)
{
    if (!lock_enter(cache->lock))
        return; /* the slow path asks again */
    store_relaxed(&cache->mine, &cache_mine);
    lock_release(cache->lock);
}

COLD bool cache_resume(struct cache *cache)
{
    if (!lock_enter(cache->lock))
        return false;
    cache_show(cache);
    lock_release(cache->lock);
    return true;
}

static SLOW struct finding ahead_put(struct cache *cache)
{
    struct finding found = {MISUSE_NONE, NULL};
    for (unsigned cls = 0; cls < AHEAD_CLASSES && cache->sampler != NULL; cls++) {
        void **blocks = NULL;
        size_t used = ahead_used(cache, cls, &blocks);
        finding_keep(&found, shards_put(blocks, used));
        cache_gave(cache, used * size_classes[cls].size);
    }
    ahead_close(cache);
    return found;
}

struct finding cache_drain(struct cache *cache)
{
    ASSERT(lock_held(cache->lock));
    struct finding found = ahead_put(cache);
    finding_keep(&found, stacks_put(cache, 0, STACKS));
    if (unlikely(cache->hardened != NULL))
        finding_keep(&found, hardened_put_all(cache));
    cache_reset(cache);
    return found;
}

struct finding cache_empty(struct cache *cache)
{
    struct finding found = {MISUSE_NONE, NULL};
    if (!lock_enter(cache->lock))
        return found;
    found = cache_drain(cache);
    cache->shut = closed_for(CLOSED_CHECKED);
    lock_release(cache->lock);
    return found;
}

struct finding cache_shut(struct cache *cache)
{
    if (cache->shut)
        return (struct finding){MISUSE_NONE, NULL};
    return cache_empty(cache);
}

struct finding cache_empty_at_end(struct cache *cache)
{
    struct finding found = {MISUSE_NONE, NULL};
    if (!lock_try(&cacheless_lock))
        return found;
    if (lock_try(cache->lock)) {
        found = cache_drain(cache);
        lock_release(cache->lock);
    }
    lock_release(&cacheless_lock);
    return found;
}

void *caches_written(size_t *most)
{
    void *found = NULL;
    for (struct cache *cache = caches_every(); cache != NULL && found == NULL;
         cache = cache->every) {
        if (cache == load_relaxed(&cache_mine) || !lock_try(cache->lock))
            continue;
        if (registry_ownership(cache) == CACHE_LIVING && slices_try_stop()) {
            found = hardened_written(cache, most);
            slices_go_on();
        }
        lock_release(cache->lock);
    }
    return found;
}

/* Gives up a cache whose thread is gone. */
static struct finding cache_end(struct cache *cache)
{
    ASSERT(lock_held(&cacheless_lock));
    lock_take(cache->lock);
    store_relaxed(&cache->mine, NULL);
    struct finding found = cache_drain(cache);
    lock_release(cache->lock);
    registry_leave(cache);
    return found;
}

/* A block that was just on its way to or from
 * the program is in the stack and free at once; it is passed over. */
COLD void orphan_take_in(void)
{
    if (!lock_enter(&cacheless_lock))
        return;
    struct cache *orphan = registry_adopt();
    if (orphan != NULL)
        cache_end(orphan);
    lock_release(&cacheless_lock);
}

static bool caches_left FORK_PAGE; /* atomic: some of them are */

COLD struct finding caches_end_left(void)
{
    ASSERT(lock_none_held());
    struct finding found = {MISUSE_NONE, NULL};
    while (load_relaxed(&caches_left) && fork_is_over() && lock_enter(&cacheless_lock)) {
        __atomic_store_n(&caches_left, false, __ATOMIC_SEQ_CST);
        for (struct cache *cache = caches_every(); cache != NULL; cache = cache->every) {
            if (!__atomic_exchange_n(&cache->left, false, __ATOMIC_SEQ_CST) ||
                registry_ownership(cache) != CACHE_LIVING)
                continue;
            finding_keep(&found, cache_end(cache));
        }
        lock_release(&cacheless_lock);
    }
    return found;
}

/* For a thread that ends while a fork holds its cache's lock or the registry's. The cache is marked
 * as left, and the first thread that can take the locks ends it (caches_end_left): this one, or the
 * forking thread. The fork clears its state before it looks for such caches. So either it finds
 * this one, or caches_end_left sees here that the fork is over.
 *
 * When this returns, no closer that has read the address of the thread's cache_mine holds the
 * cache's lock any more: the lock was free at one moment, or a fork holds it. */
static COLD struct finding cache_leave(struct cache *cache)
{
    __atomic_store_n(&cache->mine, NULL, __ATOMIC_SEQ_CST);
    store_relaxed(&cache_mine, &cache_gone);
    __atomic_store_n(&cache->left, true, __ATOMIC_SEQ_CST);
    __atomic_store_n(&caches_left, true, __ATOMIC_SEQ_CST);
    struct finding found = caches_end_left();
    if (lock_enter(cache->lock))
        lock_release(cache->lock);
    return found;
}

COLD struct finding cache_delete(struct cache *cache)
{
    if (!lock_enter(cache->lock))
        return cache_leave(cache);
    store_relaxed(&cache->mine, NULL);
    store_relaxed(&cache_mine, &cache_gone);
    struct finding found = cache_drain(cache);
    lock_release(cache->lock);
    if (!lock_enter(&cacheless_lock)) {
        finding_keep(&found, cache_leave(cache));
        return found;
    }
    registry_leave(cache);
    lock_release(&cacheless_lock);
    return found;
}

/* ---- frees during a fork ---- */

struct link {
    struct link *next;
};

struct note {
    struct link link; /* first */
    void *block;
};

/* Newest first; atomic: each grows at the front and is taken whole. Blocks themselves, linked
 * through their first word, are for want of memory: it is the program's until the free, and a block
 * that is freed twice would spoil the list. */
static struct {
    struct link *notes, *blocks;
} deferred FORK_PAGE;

static void deferred_add(struct link **list, struct link *link)
{
    link->next = load_relaxed(list);
    while (!__atomic_compare_exchange_n(list, &link->next, link, false, __ATOMIC_SEQ_CST,
                                        __ATOMIC_RELAXED))
        ;
}

static struct link *deferred_take(struct link **list)
{
    return __atomic_exchange_n(list, NULL, __ATOMIC_ACQUIRE);
}

static bool deferred_any(void)
{
    return load_relaxed(&deferred.notes) != NULL || load_relaxed(&deferred.blocks) != NULL;
}

/* A fork that ends clears its state before it looks for what is here; so it finds this block, or is
 * seen to have ended. */
COLD struct finding deferred_put(void *p)
{
    struct note *note = reserve_take(sizeof *note, 1);
    if (note != NULL) {
        note->block = p;
        deferred_add(&deferred.notes, &note->link);
    } else {
        deferred_add(&deferred.blocks, p);
    }
    return fork_is_over() ? deferred_drain() : (struct finding){MISUSE_NONE, NULL};
}

static struct finding deferred_give(void *p)
{
    static const struct guarded_call unknown;
    unsigned bin = map_bin(p);
    bool guarded = bin == BIN_FOREIGN && guarded_holds(p);
    if (bin == BIN_SAMPLED || ((guarded || bin == BIN_HUGE) && load_relaxed(&profile_used)))
        samples_forget(p);
    if (guarded)
        return (struct finding){guarded_give(p, &unknown), p};
    if (bin_of_slab(bin))
        return shards_put(&p, 1);
    return (struct finding){bin == BIN_FOREIGN ? MISUSE_FREE : huge_give(p), p};
}

COLD struct finding deferred_drain(void)
{
    ASSERT(lock_none_held());
    struct finding found = {MISUSE_NONE, NULL};
    while (deferred_any() && fork_is_over() && lock_enter(&cacheless_lock)) {
        for (struct link *link = deferred_take(&deferred.notes), *next; link != NULL; link = next) {
            next = link->next;
            finding_keep(&found, deferred_give(((struct note *)link)->block));
            reserve_give(link);
        }
        for (struct link *link = deferred_take(&deferred.blocks), *next; link != NULL;
             link = next) {
            next = link->next;
            link->next = NULL; /* as a hardened heap's free blocks hold zeroes */
            finding_keep(&found, deferred_give(link));
        }
        lock_release(&cacheless_lock);
    }
    return found;
}

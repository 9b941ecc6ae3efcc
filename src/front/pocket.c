#include "front/pocket.h"

#include "back/large.h"
#include "back/slices.h"
#include "base/atomic.h"
#include "base/counters.h"
#include "base/policy.h"
#include "front/deferred.h"
#include "front/registry.h"
#include "os/lock.h"

/* All pockets together are to hold no more than may be kept anyway. */
static bool may_keep(size_t bytes)
{
    size_t all = bytes * caches_awake();
    return bytes <= RUN_MOST
               ? all / SLICE <= unless_auto(load_relaxed(&keeping.slices), RETAIN_SLICES_FIRST)
               : all <= unless_auto(load_relaxed(&keeping.huge), BIG_CACHE_FIRST);
}

/* Where sizes change all the time a pocket is only in the way: after so many that did not fit it is
 * used but now and then, until one does. */
#define MISSES 8
#define NOW_AND_THEN 16

static bool is_used(struct cache *cache)
{
    if (likely(cache->pocket.misses < MISSES))
        return true;
    if (++cache->pocket.misses < MISSES + NOW_AND_THEN)
        return false;
    cache->pocket.misses = MISSES;
    return true;
}

/* Frees p to memory that all threads share. */
static SLOW struct finding give(struct cache *cache, void *p, unsigned bin)
{
    if (!lock_enter(cache_lock_of(cache)))
        return deferred_put(p);
    enum misuse what = large_give(p, bin);
    lock_release(cache_lock_of(cache));
    return (struct finding){what, p};
}

/* Frees a parked block to memory that all threads share, if it is still parked. */
static SLOW struct finding release(struct cache *cache, void *p)
{
    if (lock_enter(cache->lock)) {
        large_release(p);
        lock_release(cache->lock);
    } else if ((p = large_unpark(p)) != NULL) {
        return deferred_put(p);
    }
    return (struct finding){MISUSE_NONE, NULL};
}

struct finding pocket_put(struct cache *cache, void *p, unsigned bin)
{
    if (unlikely(cache == NULL || !is_used(cache)))
        return give(cache, p, bin);
    size_t bytes;
    enum misuse what = large_park(p, bin, &bytes);
    if (unlikely(what != MISUSE_NONE))
        return (struct finding){what, p};
    void *before = p;
    if (likely(may_keep(bytes))) {
        before = load_relaxed(&cache->pocket.block);
        cache->pocket.old = false;
        store_release(&cache->pocket.block, p);
    }
    return before != NULL ? release(cache, before) : (struct finding){MISUSE_NONE, NULL};
}

/* What lies idle elsewhere is to grow old by these frees too; but to look after it each time would
 * take longer than all the rest. */
#define HITS_A_TICK 16
#define IDLE_TICKS 4 /* so many together where nothing lies idle */

static void tick(struct cache *cache, size_t bytes)
{
    cache->pocket.freed += bytes;
    if (++cache->pocket.hits % HITS_A_TICK != 0)
        return;
    bool idle = slices_dirty() > 0 || large_dirty() > 0;
    if (!idle && cache->pocket.hits < IDLE_TICKS * HITS_A_TICK)
        return;
    clock_advance(cache->pocket.freed);
    cache->pocket.freed = cache->pocket.hits = 0;
}

void *pocket_take(struct cache *cache, size_t n)
{
    void *p = load_relaxed(&cache->pocket.block);
    if (p == NULL)
        return NULL;
    store_relaxed(&cache->pocket.block, NULL);
    size_t bytes;
    switch (large_reuse(&p, n, &bytes)) {
    case REUSE_DONE:
        cache->pocket.misses = 0;
        tick(cache, bytes);
        return p;
    case REUSE_UNFIT:
        if (cache->pocket.misses < MISSES)
            cache->pocket.misses++;
        give(cache, p, map_bin(p));
        return NULL;
    default:
        return NULL;
    }
}

void pocket_empty(struct cache *cache)
{
    ASSERT(lock_held(cache->lock) || lock_rank_held(RANK_PURGE));
    void *p = load_acquire(&cache->pocket.block);
    if (p == NULL)
        return;
    large_release(p);
    /* The owner may have put another there. */
    __atomic_compare_exchange_n(&cache->pocket.block, &p, NULL, false, __ATOMIC_RELAXED,
                                __ATOMIC_RELAXED);
}

void pocket_age(struct cache *cache)
{
    ASSERT(lock_rank_held(RANK_PURGE) && cache == cache_current());
    if (load_relaxed(&cache->pocket.block) == NULL)
        return;
    if (cache->pocket.old)
        pocket_empty(cache);
    cache->pocket.old = true;
}

#include "front/large.h"

#include "back/use.h"
#include "base/policy.h"
#include "front/cache.h"
#include "front/stacks.h"
#include "heap/shards.h"
#include "learn/share.h"

static size_t large_most(void)
{
    size_t threads = caches_living();
    size_t used_most = threads > 1 ? 0 : load_relaxed(&use.most);
    if (load_relaxed(&policy.keep_bytes) < KEEP_ALL)
        return 0; /* that number is of these, too */
    size_t most =
        share_of_large(threads, used_most, CLASS_SLICES_MOST, load_relaxed(&policy.thread_bytes));
    return smaller(most, load_relaxed(&limits.look) / larger(threads, 1));
}

static void large_tell(struct cache *cache)
{
    ASSERT(lock_held(cache->lock));
    if (likely(cache->large_bytes == cache->large_told))
        return;
    add_relaxed(&use.stacked, cache->large_bytes - cache->large_told);
    cache->large_told = cache->large_bytes;
}

/* What the stacks may hold by now, and what the others know of them. */
static void large_settle(struct cache *cache)
{
    ASSERT(lock_held(cache->lock));
    cache->large_most = large_most();
    large_tell(cache);
}

/* Where the cache was closed the stack may hold some. */
static void *large_left(struct cache *cache, unsigned cls)
{
    void *p;
    if (!stack_begun(&cache->cold[cls]))
        return NULL;
    stack_settle(cache, cls);
    if (!cache_pop(cache, (BIN_FIRST + cls) * BIN_BYTES, &p))
        return NULL;
    cache->large_bytes -= size_classes[cls].size;
    return p;
}

/* Frees all that the stacks hold. */
static struct finding large_put_all(struct cache *cache)
{
    struct finding found = stacks_put(cache, CLASS_LARGE, CLASSES);
    large_settle(cache);
    return found;
}

COLD struct finding large_empty(struct cache *cache)
{
    /* The caches of threads that have none have no lock either. */
    if (begun_from(cache, CLASS_LARGE) >= CLASSES || !lock_try(cache->lock))
        return (struct finding){MISUSE_NONE, NULL};
    struct finding found = large_put_all(cache);
    lock_release(cache->lock);
    return found;
}

SLOW void *large_take(struct cache *cache, unsigned cls)
{
    ASSERT(lock_held(cache->lock));
    void *p[1] = {NULL};
    store_relaxed(&cache->refills, cache->refills + 1);
    p[0] = large_left(cache, cls);
    large_settle(cache);
    if (likely(p[0] == NULL))
        cache_took(cache, shard_take(cache->shard, cls, p + 1, 1) * size_classes[cls].size);
    return p[0];
}

SLOW struct finding large_give(struct cache *cache, unsigned cls, void *p)
{
    ASSERT(lock_held(cache->lock));
    struct finding found = {MISUSE_NONE, NULL};
    store_relaxed(&cache->flushes, cache->flushes + 1);
    stack_settle(cache, cls);
    large_settle(cache);
    stack_set_limit(cache, cls); /* after a rest, say */
    if (!large_push(cache, cls, p)) {
        found = shards_put(&p, 1);
        cache_gave(cache, size_classes[cls].size);
    }
    return found;
}

/* How many of a stack nobody needed for a while. */
static size_t too_old(const struct cache *cache, unsigned stack)
{
    size_t used = stack_used(&cache->bins[BIN_FIRST + stack], &cache->cold[stack]);
    if (!stack_is_large(stack))
        return used / 2;
    return cache->large_used ? 0 : used;
}

static size_t ages; /* atomic; how often all stacks grew older */

static COLD struct finding stacks_age_mine(struct cache *cache)
{
    ASSERT(lock_held(cache->lock));
    struct finding found = {MISUSE_NONE, NULL};
    cache->ages = load_relaxed(&ages);
    for (unsigned stack = begun_from(cache, 0); stack < STACKS;
         stack = begun_from(cache, stack + 1)) {
        size_t old = too_old(cache, stack);
        if (old > 0) {
            stack_settle(cache, stack);
            finding_keep(&found, stack_put_oldest(cache, stack, old, false));
        }
        stack_fit(cache, stack);
    }
    cache->large_used = false;
    large_settle(cache);
    return found;
}

SLOW struct finding stacks_catch_up(struct cache *cache)
{
    large_tell(cache);
    if (unlikely(cache->ages != load_relaxed(&ages)))
        return stacks_age_mine(cache);
    return (struct finding){MISUSE_NONE, NULL};
}

COLD struct finding stacks_age(struct cache *cache)
{
    struct finding found = {MISUSE_NONE, NULL};
    add_relaxed(&ages, 1);
    /* The caches of threads that have none have no lock either. */
    if (begun_from(cache, 0) >= STACKS || !lock_try(cache->lock))
        return found;
    found = stacks_age_mine(cache);
    lock_release(cache->lock);
    return found;
}

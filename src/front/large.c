#include "front/large.h"

#include "back/use.h"
#include "base/policy.h"
#include "front/deferred.h"
#include "front/registry.h"
#include "front/stacks.h"
#include "heap/shards.h"

/* Of the most that was in use, for all threads together: 16 blocks of 2 MiB that come and go take
 * 0.5 of the instructions, and with an eighth 1.4. But a thread among few may always hold one block
 * of any class: a buffer that comes and goes. */
#define PART 2
#define FEW 4

static void large_bound(struct cache *cache)
{
    size_t threads = caches_awake();
    size_t most = load_relaxed(&use.most) / PART / (threads > 0 ? threads : 1);
    size_t least = threads <= FEW ? CLASS_SLICES_MOST : 0;
    most = most > least ? most : least;
    /* If a number of slices was set, it is of those in stacks, too; so none are. */
    cache->large_most = load_relaxed(&keeping.slices) == AUTO ? most : 0;
}

SLOW void *large_take(struct cache *cache, unsigned cls)
{
    void *p[1] = {NULL};
    if (unlikely(!cache_enter(cache)))
        return not_entered();
    store_relaxed(&cache->refills, cache->refills + 1);
    large_bound(cache);
    size_t size = shard_take(cache->shard, cls, p + 1, 1) * size_classes[cls].size;
    cache->taken += size;
    lock_release(cache->lock);
    return p[0];
}

SLOW struct finding large_give(struct cache *cache, unsigned cls, void *p)
{
    if (unlikely(!cache_enter(cache)))
        return deferred_put(p);
    store_relaxed(&cache->flushes, cache->flushes + 1);
    large_bound(cache);
    stack_settle(cache, cls);
    struct finding found = {MISUSE_NONE, NULL};
    if (!cache->rests && large_push(cache, cls, p)) { /* its first, or the bound has grown */
        lock_release(cache->lock);
        return found;
    }
    found = shards_put(&p, 1);
    cache_gave(cache, size_classes[cls].size);
    lock_release(cache->lock);
    return found;
}

COLD struct finding large_age(struct cache *cache)
{
    struct finding found = {MISUSE_NONE, NULL};
    bool used = cache->large_used;
    if (cache->large_bytes == 0)
        return found;
    cache->large_used = false;
    if (used || !lock_try(cache->lock))
        return found;
    for (unsigned cls = begun_from(cache, CLASS_LARGE); cls < CLASSES && !cache->asleep;
         cls = begun_from(cache, cls + 1)) {
        stack_settle(cache, cls);
        struct finding one = stack_put_all(cache, cls);
        if (found.what == MISUSE_NONE)
            found = one;
    }
    lock_release(cache->lock);
    return found;
}

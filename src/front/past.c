#include "front/past.h"

#include "front/deferred.h"
#include "front/journal.h"
#include "front/stacks.h"
#include "heap/shards.h"

void *past_take(struct cache *cache, unsigned cls)
{
    void *p = NULL;
    if (unlikely(!lock_enter(cache->lock)))
        return not_entered();
    unsigned shard = cache->hinted > 0 ? cache->hinted - 1 : cache->shard;
    cache->hinted = 0;
    bool before = shard_compacts(shard, cls);
    if (shard_take(shard, cls, &p + 1, 1) == 1)
        cache_took(cache, size_classes[cls].size);
    journal_compaction(shard, cls, before);
    lock_release(cache->lock);
    return p;
}

/* On top of the stack, or of the class's other one. */
static bool lies_on_top(const struct cache *cache, unsigned stack, const void *p)
{
    unsigned cls = stack_class(stack);
    return load_relaxed(&cache->bins[BIN_FIRST + cls].topmost) == p ||
           (cls < CLASSES_THIN &&
            load_relaxed(&cache->bins[BIN_FIRST + CLASSES + cls].topmost) == p);
}

struct finding past_give(struct cache *cache, unsigned stack, void *p)
{
    if (unlikely(lies_on_top(cache, stack, p)))
        return (struct finding){MISUSE_FREE, p};
    if (unlikely(!lock_enter(cache->lock)))
        return deferred_put(p);
    unsigned cls = stack_class(stack);
    bool before = shard_compacts(cache->shard, cls);
    struct finding found = shards_put(&p, 1);
    cache_gave(cache, size_classes[cls].size);
    journal_compaction(cache->shard, cls, before);
    lock_release(cache->lock);
    return found;
}

static bool enter(struct cache *cache)
{
    return cache != NULL ? lock_enter(cache->lock) : lock_enter(&cacheless_lock);
}

/* A thread without a cache takes from the first shard alone. */
bool past_attracts(struct cache *cache, const void *p)
{
    if (unlikely(!enter(cache)))
        return false;
    unsigned shard = 0;
    bool attracts = shards_attract(p, &shard) && (cache != NULL || shard == 0);
    if (cache != NULL)
        cache->hinted = attracts ? shard + 1 : 0;
    lock_release(cache_lock_of(cache));
    return attracts;
}

size_t past_gain(struct cache *cache)
{
    if (unlikely(!enter(cache)))
        return 0;
    size_t gain = shards_gain();
    lock_release(cache_lock_of(cache));
    return gain;
}

#include "front/past.h"

#include "front/adapt.h"
#include "front/stacks.h"
#include "heap/shards.h"

void *past_take(struct cache *cache, unsigned cls)
{
    ASSERT(lock_held(cache->lock));
    void *p = NULL;
    unsigned shard = cache->hinted > 0 ? cache->hinted - 1 : cache->shard;
    cache->hinted = 0;
    bool before = shard_compacts(shard, cls);
    if (shard_take(shard, cls, &p + 1, 1) == 1)
        cache_took(cache, size_classes[cls].size);
    journal_compaction(shard, cls, before);
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
    ASSERT(lock_held(cache->lock));
    if (unlikely(lies_on_top(cache, stack, p)))
        return (struct finding){MISUSE_FREE, p};
    unsigned cls = stack_class(stack);
    bool before = shard_compacts(cache->shard, cls);
    struct finding found = shards_put(&p, 1);
    cache_gave(cache, size_classes[cls].size);
    journal_compaction(cache->shard, cls, before);
    return found;
}

/* A thread without a cache takes from the first shard alone. */
bool past_attracts(struct cache *cache, const void *p)
{
    ASSERT(lock_held(cache_lock_of(cache)));
    unsigned shard = 0;
    bool attracts = shards_attract(p, &shard) && (cache != NULL || shard == 0);
    if (cache != NULL)
        cache->hinted = attracts ? shard + 1 : 0;
    return attracts;
}

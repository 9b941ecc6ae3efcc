#include "front/past.h"

#include "front/deferred.h"
#include "front/journal.h"
#include "front/stacks.h"
#include "heap/shards.h"

void *past_take(struct cache *cache, unsigned cls)
{
    void *p = NULL;
    if (unlikely(!cache_enter(cache)))
        return not_entered();
    bool before = shard_compacts(cache->shard, cls);
    if (shard_take(cache->shard, cls, &p + 1, 1) == 1)
        cache->taken += size_classes[cls].size;
    journal_compaction(cache->shard, cls, before);
    lock_release(cache->lock);
    return p;
}

struct finding past_give(struct cache *cache, unsigned stack, void *p)
{
    if (unlikely(!cache_enter(cache)))
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
    return cache != NULL ? cache_enter(cache) : lock_enter(&cacheless_lock);
}

bool past_attracts(struct cache *cache, const void *p)
{
    if (unlikely(!enter(cache)))
        return false;
    bool attracts = shard_attracts(cache != NULL ? cache->shard : 0, p);
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

#include "api/sampled.h"

#include "back/map.h"
#include "back/meta.h"
#include "base/policy.h"
#include "front/cacheless.h"
#include "front/deferred.h"
#include "heap/shards.h"
#include "heap/slab.h"
#include "life/life.h"
#include "life/upkeep.h"
#include "os/lock.h"
#include "profile/rate.h"
#include "watch/backtrace.h"

__thread const char *call_name;

/* The unwinder may allocate: that is not sampled. */
static __thread bool at_work;

static struct sampler *sampler_of(struct cache *cache)
{
    if (cache == NULL)
        return NULL;
    if (cache->sampler == NULL && lock_enter(cache->lock)) {
        struct sampler *sampler = meta_take(sizeof *sampler);
        if (sampler != NULL)
            *sampler = (struct sampler){.random = rate_random()};
        cache->sampler = sampler;
        lock_release(cache->lock);
    }
    return cache->sampler;
}

static bool due_by_chance(size_t bytes)
{
    uint64_t random = rate_random();
    return rate_gap(&random, bytes, policy.profile_rate) == 1;
}

SLOW bool sample_due_now(unsigned cls)
{
    struct sampler *sampler = sampler_of(thread_cache());
    size_t bytes = size_classes[cls].size;
    if (sampler == NULL)
        return !at_work && due_by_chance(bytes);
    if (sampler->gaps[BIN_FIRST + cls] == 0)
        sampler->gaps[BIN_FIRST + cls] = rate_gap(&sampler->random, bytes, policy.profile_rate);
    if (--sampler->gaps[BIN_FIRST + cls] > 0)
        return false;
    sampler->gaps[BIN_FIRST + cls] = rate_gap(&sampler->random, bytes, policy.profile_rate);
    return !at_work;
}

SLOW bool sample_due_huge(size_t bytes) { return !at_work && due_by_chance(bytes); }

SLOW void *sampled_take(unsigned cls)
{
    struct lock *lock = cache_lock_of(thread_cache());
    void *p = NULL;
    if (!lock_enter(lock))
        return NULL;
    size_t taken = shard_take(SHARD_SAMPLED, cls, &p + 1, 1);
    lock_release(lock);
    make_room(0);
    if (taken != 1)
        return NULL;
    block_unseal(p); /* what the slab's memory was before may have left one */
    return p;
}

SLOW void sampled_note(void *p, size_t n, size_t bytes, const char *name)
{
    struct origin from;
    from.name = name != NULL ? name : "";
    at_work = true;
    from.depth = backtrace_cheap() ? backtrace_frames(from.frames, FRAMES_MOST, NULL) : 0;
    at_work = false;
    struct lock *lock = cache_lock_of(thread_cache());
    if (!lock_enter(lock))
        return;
    bool noted = samples_add(p, n, rate_weight(bytes, policy.profile_rate), &from);
    if (noted && map_bin(p) == BIN_WHOLE)
        map_set(p, 1, BIN_SAMPLED, map_owner(p));
    lock_release(lock);
}

SLOW struct finding sampled_give(void *p, bool *whole)
{
    struct lock *lock = cache_lock_of(thread_cache());
    struct finding found = {MISUSE_NONE, NULL};
    *whole = false;
    if (!lock_enter(lock))
        return deferred_put(p);
    struct slab *slab = map_owner(p);
    bool known = samples_forget(p);
    size_t bytes = 0;
    if (slab == NULL || (!known && slab->cls >= CLASS_SLICES_FIRST)) {
        found = (struct finding){slab == NULL ? MISUSE_FREE : MISUSE_INTERIOR, p};
    } else if (slab->cls >= CLASS_SLICES_FIRST) {
        map_set(p, 1, BIN_WHOLE, slab);
        *whole = true;
    } else {
        bytes = size_classes[slab->cls].size;
        found = shards_put(&p, 1);
    }
    lock_release(lock);
    clock_advance(bytes);
    look_after_memory(0);
    return found;
}

SLOW void sampled_forget_huge(const void *p)
{
    struct lock *lock = cache_lock_of(thread_cache());
    if (!lock_enter(lock))
        return;
    samples_forget(p);
    lock_release(lock);
}

#include "front/crowd.h"

#include "back/use.h"
#include "base/atomic.h"
#include "front/adapt.h"
#include "front/registry.h"
#include "front/stacks.h"
#include "learn/returns.h"
#include "learn/share.h"
#include "os/lock.h"
#include "os/os.h"

bool crowd_holds_little(const struct cache *cache)
{
    return share_little_left(cache->taken, cache->capacity_bytes);
}

/* Whether the program has freed all but little of the most that it had of the thread's blocks. */
static COLD bool gave_nearly_all(const struct cache *cache)
{
    ptrdiff_t stacks_hold = (ptrdiff_t)(cache->capacity_bytes + cache->large_bytes);
    ptrdiff_t taken = (ptrdiff_t)cache->taken;
    if (!use_returns_all())
        return false;
    if (taken <= 0) /* it frees what others took */
        return load_relaxed(&use.low);
    return returns_rests(taken - stacks_hold, cache->most_taken) &&
           returns_rests(taken - (ptrdiff_t)stacks_bytes(cache), cache->most_taken);
}

/* A thread that has given back all but little, by frees alone, has nothing to do with what its
 * stacks hold. One that comes back soon is at work, and the next time that it stops may be as
 * short. */
bool crowd_comes_to_rest(struct cache *cache)
{
    ASSERT(lock_held(cache->lock));
    if (cache->gives < LAW_IN_A_ROW) {
        cache->gives++;
        return false;
    }
    bool all = gave_nearly_all(cache) || (crowd_holds_little(cache) && caches_crowded());
    return all && os_milliseconds() >= cache->stays_until;
}

bool crowd_still_rests(const struct cache *cache)
{
    return (ptrdiff_t)cache->taken > 0 || load_relaxed(&use.low) || crowd_holds_little(cache);
}

/* Where there are twice as many threads as there were, some may have learned to hold what is too
 * much now. Each finds that out by its next free: any thread with the lock may close a stack to
 * free, at any moment. */
void crowd_cut(void)
{
    static size_t crowd; /* atomic: threads, as a power of two */
    size_t now = (size_t)1 << highest_bit(caches_living() | 1);
    size_t before = load_relaxed(&crowd);
    if (now == before)
        return;
    store_relaxed(&crowd, now);
    if (now < before || !caches_crowded())
        return;
    for (struct cache *cache = caches_every(); cache != NULL; cache = cache->every) {
        if (registry_ownership(cache) != CACHE_LIVING || !lock_try(cache->lock))
            continue;
        if (share_is_passed(cache->capacity_bytes, cache_share(cache).bytes) && !cache->asleep) {
            store_relaxed(&cache->cut, true);
            stacks_open(cache);
        }
        lock_release(cache->lock);
    }
}

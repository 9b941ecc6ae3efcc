#include "front/crowd.h"

#include "base/atomic.h"
#include "front/adapt.h"
#include "front/registry.h"
#include "os/lock.h"
#include "os/os.h"

/* A thread that has given back all but so little, by frees alone, has nothing to do with what its
 * stacks hold: one that was given others' blocks has given back more than it took. One that comes
 * back soon is at work, and the next time that it stops may be as short. */
#define RESTS_BELOW (128 * KiB)
#define OF_OTHERS (64 * KiB) /* some were mostly dealt out to it */
#define GIVES_LEAST 4

bool crowd_holds_little(const struct cache *cache)
{
    size_t less = cache->capacity_bytes > RESTS_BELOW ? cache->capacity_bytes : RESTS_BELOW;
    return cache->taken + OF_OTHERS <= less + OF_OTHERS;
}

bool crowd_comes_to_rest(struct cache *cache)
{
    ASSERT(lock_held(cache->lock));
    if (cache->gives < GIVES_LEAST) {
        cache->gives++;
        return false;
    }
    return crowd_holds_little(cache) && caches_crowded() && os_milliseconds() >= cache->stays_until;
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
        if (cache->capacity_bytes > 2 * cache_share(cache).bytes && !cache->asleep) {
            store_relaxed(&cache->cut, true);
            for (unsigned i = BIN_FIRST; i < BINS; i++)
                store_relaxed(&cache->bins[i].limit, NULL);
        }
        lock_release(cache->lock);
    }
}

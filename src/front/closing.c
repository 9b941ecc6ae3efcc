#include "front/closing.h"

#include "front/cache.h"
#include "front/registry.h"
#include "heap/classes.h"
#include "os/lock.h"

uint32_t closed_from_outside;

static unsigned closings_of(const struct cache *cache)
{
    unsigned ordered = load_relaxed(&closed_from_outside) != 0 ? CLOSED_ORDERED : 0;
    return load_relaxed(&closings) | ordered | load_relaxed(&cache->closings);
}

static void whole_settle(struct cache *cache)
{
    bool closed = (closings_of(cache) & CLOSE_WHOLE) != 0;
    store_relaxed(&cache->whole, closed ? NO_WHOLE : BIN_WHOLE * BIN_BYTES);
}

static void bin_settle(struct cache *cache, unsigned stack, unsigned reasons)
{
    if (!stack_begun(&cache->cold[stack]))
        reasons &= ~(unsigned)CLOSE_BEGUN;
    store_relaxed(&cache->bins[BIN_FIRST + stack].inverse,
                  (reasons & CLOSE_GIVING) != 0 ? 0 : class_inverses[stack_class(stack)]);
}

/* Of all stacks, or of those that are begun. */
static SLOW void bins_settle(struct cache *cache, bool all)
{
    unsigned reasons;
    do {
        reasons = closings_of(cache);
        for (unsigned first = 0; first < STACKS; first += 64) {
            uint64_t left = low_bits(smaller(STACKS - first, 64));
            for (left &= all ? left : cache->begun[first / 64]; left != 0; left &= left - 1)
                bin_settle(cache, first + lowest_bit(left), reasons);
        }
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
    } while (unlikely(closings_of(cache) != reasons)); /* another process changed them */
}

void cache_settle(struct cache *cache)
{
    whole_settle(cache);
    bins_settle(cache, true);
}

SLOW void stack_settle_closing(struct cache *cache, unsigned stack)
{
    unsigned reasons;
    do {
        reasons = closings_of(cache);
        bin_settle(cache, stack, reasons);
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
    } while (unlikely(closings_of(cache) != reasons));
}

void cache_close(struct cache *cache, enum closing reason, bool on)
{
    ASSERT(lock_held(cache->lock));
    unsigned now = cache->closings;
    store_relaxed(&cache->closings, on ? now | reason : now & ~(unsigned)reason);
    whole_settle(cache);
    bins_settle(cache, false);
}

static void caches_settle(void)
{
    for (struct cache *cache = caches_every(); cache != NULL; cache = cache->every) {
        lock_take(cache->lock);
        cache_settle(cache);
        lock_release(cache->lock);
    }
}

/* An owner on some processors may see only later that its cache is gone. Until then it goes on with
 * stacks that nobody else touches: tests/models/closer.pml. */
static void caches_take_away(void)
{
    for (struct cache *cache = caches_every(); cache != NULL; cache = cache->every) {
        lock_take(cache->lock);
        if (registry_ownership(cache) == CACHE_LIVING)
            registry_exchange(cache, cache, &cache_none);
        lock_release(cache->lock);
    }
}

enum taking { OPEN, AHEAD, CLOSED };

static enum taking taking_for(unsigned reasons)
{
    if ((reasons & CLOSE_AHEAD) != 0)
        return CLOSED;
    return (reasons & CLOSE_TAKING) != 0 ? AHEAD : OPEN;
}

static bool taking_settle(unsigned wanted)
{
    static const struct ahead_offsets ahead = {
        .at = offsetof(struct cache, ahead), .step = sizeof(struct ahead), .count = AHEAD_CLASSES};
    static const struct ahead_offsets none = {0};
    enum taking now = taking_for(wanted);
    if (now == taking_for(load_relaxed(&closings)))
        return true;
    return classes_close(now == OPEN ? NULL : now == AHEAD ? &ahead : &none);
}

COLD bool heap_close(enum closing reason, bool on)
{
    ASSERT(reason == CLOSED_CHECKED || lock_held(&cacheless_lock));
    unsigned now = load_relaxed(&closings);
    if (!taking_settle(on ? now | reason : now & ~(unsigned)reason))
        return false;
    if (on)
        __atomic_fetch_or(&closings, reason, __ATOMIC_SEQ_CST);
    else
        __atomic_fetch_and(&closings, ~(unsigned)reason, __ATOMIC_SEQ_CST);
    if ((reason & CLOSE_GIVING) != 0)
        caches_settle();
    if ((reason & CLOSE_CACHES) != 0 && on)
        caches_take_away(); /* opened, each owner finds its cache again at its next call */
    return true;
}

COLD void heap_open_ordered(void)
{
    store_relaxed(&closed_from_outside, 0);
    for (struct cache *cache = caches_every(); cache != NULL; cache = cache->every) {
        if (!lock_enter(cache->lock)) {
            store_relaxed(&closed_from_outside, 1); /* a fork has everything: later */
            return;
        }
        cache_settle(cache);
        lock_release(cache->lock);
    }
}

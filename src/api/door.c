#include "api/door.h"

#include "base/policy.h"
#include "front/cache.h"
#include "heap/shards.h"
#include "life/life.h"
#include "life/settings.h"

static COLD void set_visits(struct cache *cache, bool on)
{
    if (!lock_enter(cache->lock))
        return;
    cache_close(cache, CLOSED_VISITS, on);
    lock_release(cache->lock);
}

/* While there is more to give back, each free comes here: there may be few of them. */
static inline void settle_visits(struct cache *cache)
{
    bool on = load_relaxed(&purge_goes_on);
    if (unlikely(((cache->closings & CLOSED_VISITS) != 0) != on))
        set_visits(cache, on);
}

static void obey(void)
{
    if (orders_waiting())
        orders_obey(thread_cache());
}

COLD void give_memory_back(bool freed, size_t own)
{
    obey();
    purge_step(freed, own);
    /* Of an order that came meanwhile the step has overwritten when it is due. */
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    obey();
    if (freed)
        scavenger_rouse();
    struct cache *cache = thread_cache();
    if (cache != NULL)
        settle_visits(cache);
    if (soft_limit_waits())
        soft_limit_act(thread_cache());
}

void look_after(struct cache *cache, size_t own)
{
    guards_look();
    if (purge_is_due())
        give_memory_back(true, own);
    if (likely(cache != NULL))
        settle_visits(cache);
}

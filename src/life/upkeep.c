#include "life/upkeep.h"

#include "base/counters.h"
#include "front/cache.h"
#include "heap/shards.h"
#include "life/life.h"
#include "life/scavenger.h"
#include "life/settings.h"
#include "life/visits.h"

COLD void give_memory_back(size_t own)
{
    scavenger_wake();
    if (orders_waiting())
        orders_obey(thread_cache());
    size_t returned = counters_returned();
    bool stepped = purge_step(own);
    struct cache *cache = thread_cache();
    if (cache != NULL && (stepped || cache->visits == VISIT_NEVER))
        visits_settle_after(cache, counters_returned() - returned);
    if (soft_limit_waits())
        soft_limit_act(cache);
}

void look_after_classes(struct cache *cache)
{
    guards_look();
    if (unlikely(shards_compacted())) {
        purge_ripen();
        visits_begin(cache);
    }
    bool rests = unlikely(cache->visits == VISIT_SOME) && visits_find_rest(cache);
    if (rests || purge_is_due())
        give_memory_back(0);
    visits_settle(cache);
}

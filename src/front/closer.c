#include "front/closer.h"

#include "front/registry.h"
#include "front/stacks.h"
#include "os/lock.h"

bool caches_closed;

void caches_close(bool closed)
{
    __atomic_store_n(&caches_closed, closed, __ATOMIC_SEQ_CST);
    if (!closed)
        return; /* each owner finds its cache again at its next call */
    for (struct cache *cache = caches_every(); cache != NULL; cache = cache->every) {
        lock_take(cache->lock);
        if (registry_ownership(cache) == CACHE_LIVING)
            registry_exchange(cache, cache, &cache_none);
        lock_release(cache->lock);
    }
    /* An owner on some processors may see only later that its cache is gone. Until then it goes on
     * with stacks that nobody else touches: tests/models/closer.pml. */
}

void caches_reopen(void)
{
    if (load_relaxed(&caches_closed))
        return;
    for (struct cache *cache = caches_every(); cache != NULL; cache = cache->every) {
        if (!lock_enter(cache->lock))
            return;
        stacks_open(cache);
        lock_release(cache->lock);
    }
}

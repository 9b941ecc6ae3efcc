#include "front/cacheless.h"

#include "front/deferred.h"
#include "front/registry.h"
#include "heap/shards.h"
#include "os/lock.h"

struct lock cacheless_lock FORK_PAGE = LOCK(CACHELESS);

void *cacheless_take(unsigned cls)
{
    void *p = NULL;
    if (!lock_enter(&cacheless_lock))
        return not_entered();
    size_t taken = shard_take(0, cls, &p + 1, 1);
    lock_release(&cacheless_lock);
    return taken == 1 ? p : NULL;
}

struct finding cacheless_give(void *p)
{
    if (!lock_enter(&cacheless_lock))
        return deferred_put(p);
    struct finding found = shards_put(&p, 1);
    lock_release(&cacheless_lock);
    return found;
}

void caches_fork_lock(void)
{
    lock_take(&cacheless_lock);
    registry_lock();
}

void caches_fork_unlock_parent(void)
{
    registry_unlock();
    lock_release(&cacheless_lock);
}

void caches_fork_unlock_child(struct cache *mine)
{
    registry_unlock_child(mine);
    lock_release(&cacheless_lock);
}

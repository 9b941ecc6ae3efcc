#include "front/cacheless.h"

#include "front/registry.h"
#include "os/lock.h"

struct lock cacheless_lock FORK_PAGE = LOCK(CACHELESS);

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

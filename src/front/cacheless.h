/* The lock of threads without a cache: before their first call, after their end, or if there is no
 * memory. And what a fork takes of this layer. */
#ifndef HAKMEM_FRONT_CACHELESS_H
#define HAKMEM_FRONT_CACHELESS_H

#include "front/cache.h"

/* Around fork: nobody holds a cache's lock. Afterwards the child has the calling thread's cache,
 * and orphans whose blocks it takes when it needs some. */
void caches_fork_lock(void);
void caches_fork_unlock_parent(void);
void caches_fork_unlock_child(struct cache *mine);

#endif

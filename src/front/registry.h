/* The registry: all caches that were ever made, and their owners. Caches are never freed, so any
 * thread may look at one at any time.
 *
 * The child of a fork also has the caches of its parent's other threads, with their blocks. They
 * are orphans. They are recognized by the generation of the process in which they got their owner,
 * so a child that calls exec or _exit need not touch them. Thread safe. */
#ifndef HAKMEM_FRONT_REGISTRY_H
#define HAKMEM_FRONT_REGISTRY_H

#include "front/cache.h"

enum ownership { CACHE_UNUSED, CACHE_LIVING, CACHE_ORPHAN };

/* Of a cache; another thread's may change at any moment. */
enum ownership registry_ownership(const struct cache *cache);

/* An unused cache, from now on the calling thread's; null when there is none. */
struct cache *registry_take(void);

/* Enters a new one, the calling thread's, and gives it its lock; false without memory. */
bool registry_enter(struct cache *cache);

/* Changes what the owner finds as its cache, under the cache's lock. False where it isn't `from` or
 * is not there: a thread that ended without libc's help never said so, and what its thread-local
 * memory was may be another's or nobody's. */
bool registry_exchange(struct cache *cache, struct cache *from, struct cache *to);

/* The cache is empty, and nobody's any more. */
void registry_leave(struct cache *cache);

/* Whether there may be orphans; and one of them, from now on the calling thread's to empty. */
extern bool registry_has_orphans HIDDEN; /* atomic */
struct cache *registry_adopt(void);

/* Caches of living threads. */
size_t caches_living(void);
size_t *caches_count(void); /* where it is kept, for the accounting */

/* All caches, from the newest on by `every`. */
struct cache *caches_every(void);

/* What a fork takes of this layer: the lock of threads without a cache (front/cache.h), the
 * registry's, and every cache's, so that nobody is in the middle of anything in a stack, a transfer
 * cache or a shard. Afterwards the child has the calling thread's cache, `mine`, and orphans whose
 * blocks it takes when it needs some. */
void caches_fork_lock(void);
void caches_fork_unlock_parent(void);
void caches_fork_unlock_child(struct cache *mine);

#endif

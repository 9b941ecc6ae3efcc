/* How threads get their caches and lose them. In these comments a thread may not enter a lock if a
 * long fork holds it (lock_enter). */
#ifndef HAKMEM_FRONT_OWNERS_H
#define HAKMEM_FRONT_OWNERS_H

#include "base/misuse.h"
#include "front/cache.h"

/* Gives the calling thread a cache; null without memory, or if it may not enter. */
struct cache *cache_new(void);

/* cache_delete will be called when the calling thread ends, so others may touch its cache_mine. */
void cache_ends_with_thread(struct cache *cache);

/* In a hardened heap: of what other threads' caches hold, a block to which something wrote; null
 * where there is none among the first `*most` bytes, which it takes from that. Nobody waits for a
 * lock here. */
void *caches_written(size_t *most);

/* Makes the calling thread's cache usable again after it was closed; false if it may not enter. */
bool cache_resume(struct cache *cache);

/* Frees all blocks in the calling thread's cache, if it may enter. Returns the first wrong block.
 */
struct finding cache_empty(struct cache *cache);

/* For the owner while all caches are taken away (cache.h): empties its cache, once. */
struct finding cache_shut(struct cache *cache);

/* As cache_empty, at the end of the process, which may come in a signal handler: it does nothing if
 * the handler interrupted a thread that may hold a lock of a lower layer. */
struct finding cache_empty_at_end(struct cache *cache);

/* Frees all blocks in the calling thread's cache and gives the cache up. If it may not enter, that
 * is left to `caches_end_left`. */
struct finding cache_delete(struct cache *cache);

/* Ends the caches of threads that ended while a fork held the heap. Returns the first wrong block.
 * The caller holds no lock. */
struct finding caches_end_left(void);

/* Frees the blocks of one orphan, if there is one. */
void orphan_take_in(void);

/* Frees all that the cache holds, and makes it new; the first wrong block found. The caller holds
 * the lock. */
struct finding cache_drain(struct cache *cache);

/* ---- frees during a fork ----
 *
 * Blocks that were freed while a long fork held the heap. They are noted in the reserve, or, if
 * there is no memory, linked through the blocks. When the fork is over the forking thread frees
 * them, in the parent and in the child. If a thread notes a block just after that, it frees the
 * block itself. */

/* Notes p, a block of the heap, for a thread that may not enter. Returns as `deferred_drain` where
 * the fork has ended meanwhile. */
struct finding deferred_put(void *p);

/* Frees what was noted, unless a fork holds the heap; the first wrong block found. The caller holds
 * no lock. */
struct finding deferred_drain(void);

#endif

/* How threads get their caches and lose them. In these comments a thread may not enter a lock if a
 * long fork holds it (lock_enter). */
#ifndef HAKMEM_FRONT_OWNERS_H
#define HAKMEM_FRONT_OWNERS_H

#include "base/misuse.h"
#include "front/cache.h"

/* Makes a cache the calling thread's; null without memory, or where it may not enter. */
struct cache *cache_new(void);

/* The end of the calling thread will be told (cache_delete): others may touch its cache_mine. */
void cache_ends_with_thread(struct cache *cache);

/* Makes the calling thread's cache usable again, which a thief has put to sleep; false where it may
 * not enter. */
bool cache_resume(struct cache *cache);

/* Frees all that the calling thread's cache holds, if it may enter; the first wrong block found. */
struct finding cache_empty(struct cache *cache);

/* For the owner while all caches are closed (closer.h): empties its cache, once. */
struct finding cache_shut(struct cache *cache);

/* The same at the end of the process, which may come in a signal handler: nothing happens where
 * that interrupted a thread which may hold a lock of a lower layer. */
struct finding cache_empty_at_end(struct cache *cache);

/* Frees it all and gives the cache up: the thread has none any more. Where it may not enter that is
 * left for `caches_end_left`. */
struct finding cache_delete(struct cache *cache);

/* Ends the caches of threads that ended while a fork held the heap; the first wrong block found.
 * The caller holds no lock. */
struct finding caches_end_left(void);

/* Frees what one thread held that a fork left behind, if there is one. */
void orphan_take_in(void);

#endif

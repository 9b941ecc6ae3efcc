/* The process and its threads: the first call, a thread's first call and its end, fork. */
#ifndef HAKMEM_LIFE_LIFE_H
#define HAKMEM_LIFE_LIFE_H

#include "front/cache.h"

/* The calling thread's cache, made if it has none yet. Null when the thread is ending, or without
 * memory: then the caller does without. */
struct cache *thread_cache_make(void);

/* Asks libc to tell when the calling thread ends. It can't yet while the process starts: then the
 * slow path asks again. */
void thread_ask_for_end(struct cache *cache);

static inline struct cache *thread_cache(void)
{
    struct cache *cache = cache_current();
    return likely(cache->lock != NULL) ? cache : thread_cache_make();
}

/* Every cache's lock and what it takes to get one, in the order in which they may be held together:
 * no other thread is in the middle of anything then, but may push and pop. The caller must hold
 * none, and must not allocate or free. Waits for a fork, however long that lasts. */
void heap_lock_all(void);
void heap_unlock_all(void);

/* What all memory is used for now. No lock is held. */
struct accounts;
void heap_count(struct accounts *accounts);

/* Whether certainly no other thread is, or was when a fork left it behind, in the middle of
 * anything. */
bool heap_quiet(void);

/* Handlers around fork, registered at the first call of the process. */
void fork_prepare(void);
void fork_parent(void);
void fork_child(void);

#endif

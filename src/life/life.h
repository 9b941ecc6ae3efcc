/* The life of the process and its threads: the first call, a thread's first call and its end,
 * fork. */
#ifndef HAKMEM_LIFE_LIFE_H
#define HAKMEM_LIFE_LIFE_H

#include "front/cache.h"

/* The calling thread's cache, made if it has none yet. Null when the thread is ending, or without
 * memory: then the caller does without. */
struct cache *thread_cache_make(void);

static inline struct cache *thread_cache(void)
{
    return likely(cache_mine->capacity_bytes != 0) ? cache_mine : thread_cache_make();
}

/* Handlers around fork, registered at the first call of the process. */
void fork_prepare(void);
void fork_parent(void);
void fork_child(void);

#endif

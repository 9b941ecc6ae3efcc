/* One class's stack as the slow path sees it, with the cache's lock. Its blocks lie in the slots
 * above the lowest, up to the top. */
#ifndef HAKMEM_FRONT_STACK_H
#define HAKMEM_FRONT_STACK_H

#include "front/cache.h"

/* On top of a stack that is empty, at its bottom. */
static inline void *stack_mark(void) { return window_mark(); }

/* Whether the thread has taken the slow path for this class. */
static inline bool stack_begun(const struct cold_bin *cold) { return cold->base != NULL; }

/* A thread that was stopped while it found its stack empty leaves the top below the base. */
static inline size_t stack_used(const struct bin *bin, const struct cold_bin *cold)
{
    if (!stack_begun(cold))
        return 0;
    void **top = load_relaxed(&bin->top);
    return top > cold->base ? (size_t)(top - cold->base) : 0;
}

static inline void stack_set_top(struct bin *bin, void **top)
{
    store_relaxed(&bin->top, top);
    store_relaxed(&bin->topmost, *top);
}

/* Free may push up to the capacity, but for the first blocks. */
static inline void stack_set_limit(struct cache *cache, unsigned stack)
{
    const struct cold_bin *cold = &cache->cold[stack];
    store_relaxed(&cache->bins[BIN_FIRST + stack].limit,
                  unlikely(cold->direct_frees > 0) ? NULL : cold->base + cold->capacity);
}

#endif

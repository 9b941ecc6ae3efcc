/* One class's stack as the door and the thief see it, with the cache's lock: its blocks lie in the
 * slots above the floor up to the top. */
#ifndef HAKMEM_FRONT_STACK_H
#define HAKMEM_FRONT_STACK_H

#include "front/cache.h"

/* On top of a stack that is empty, at its bottom, and where a thief has cut it. */
static inline void *stack_mark(void) { return window_mark(); }

static inline void **stack_floor(const struct depot *depot) { return depot->base + depot->floor; }

/* Whether the thread has met the door for this class. */
static inline bool stack_begun(const struct depot *depot) { return depot->base != NULL; }

/* A thread that was stopped while it found its stack empty leaves the top below the floor. */
static inline size_t stack_used(const struct bin *bin, const struct depot *depot)
{
    if (!stack_begun(depot))
        return 0;
    void **top = load_relaxed(&bin->top);
    void **floor = stack_floor(depot);
    return top > floor ? (size_t)(top - floor) : 0;
}

static inline void stack_set_top(struct bin *bin, void **top)
{
    store_relaxed(&bin->top, top);
    store_relaxed(&bin->topmost, *top);
}

/* Free may push up to the capacity without the door. */
static inline void stack_open(struct bin *bin, const struct depot *depot)
{
    bool closed = depot->wary > 0;
    store_relaxed(&bin->limit, unlikely(closed) ? NULL : depot->base + depot->capacity);
}

#endif

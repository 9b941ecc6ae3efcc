/* What malloc does if a stack is empty, and free if it is full; and blocks that pass by the stacks.
 * With the lock of the thread's cache. */
#ifndef HAKMEM_FRONT_REFILL_H
#define HAKMEM_FRONT_REFILL_H

#include "base/misuse.h"
#include "front/cache.h"

/* Fills the empty stack of a class and returns one block more; null without memory. Adds to
 * `*found` what came to light of other blocks. */
void *cache_refill(struct cache *cache, unsigned cls, struct finding *found);

/* Pushes p after the older part of a full stack is flushed. */
struct finding cache_give(struct cache *cache, unsigned stack, void *p);

/* ---- past the stacks ----
 *
 * From the lowest place that is free, and straight back. For programs that move their blocks so
 * that pages become empty (api/heap.c), in the slow path. */

/* A block of the class; null without memory. */
void *past_take(struct cache *cache, unsigned cls);

/* Frees a block of the stack's class. */
struct finding past_give(struct cache *cache, unsigned stack, void *p);

/* Whether a used block of a class is worth moving to where past_take will put it if it is next. The
 * cache may be null. */
bool past_attracts(struct cache *cache, const void *p);

#endif

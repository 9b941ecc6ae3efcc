/* Blocks that pass by the stacks: from the lowest place that is free, and straight back. For
 * programs that move their blocks so that pages become empty (api/heap.c), in the slow path. With
 * the lock of the thread's cache, here and below. */
#ifndef HAKMEM_FRONT_PAST_H
#define HAKMEM_FRONT_PAST_H

#include "base/misuse.h"
#include "front/cache.h"

/* A block of the class; null without memory. */
void *past_take(struct cache *cache, unsigned cls);

/* Frees a block of the stack's class. */
struct finding past_give(struct cache *cache, unsigned stack, void *p);

/* Whether a used block of a class is worth moving to where past_take will put it if it is next. The
 * cache may be null. */
bool past_attracts(struct cache *cache, const void *p);

#endif

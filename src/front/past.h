/* Blocks that pass by the stacks: from the lowest place that is free, and straight back. For
 * programs that move their blocks so that pages become empty (api/defrag.c), in the slow path. */
#ifndef HAKMEM_FRONT_PAST_H
#define HAKMEM_FRONT_PAST_H

#include "base/misuse.h"
#include "front/cache.h"

/* A block of the class; null without memory, or `not_entered`. */
void *past_take(struct cache *cache, unsigned cls);

/* Frees a block of the stack's class. */
struct finding past_give(struct cache *cache, unsigned stack, void *p);

/* Whether a used block of a class is worth moving to where past_take will put it if it is next. The
 * cache may be null. */
bool past_attracts(struct cache *cache, const void *p);

/* Bytes that moving could regain. 0 where a fork holds the heap. */
size_t past_gain(struct cache *cache);

#endif

/* What malloc does if a stack is empty, and free if it is full; with the cache's lock. */
#ifndef HAKMEM_FRONT_REFILL_H
#define HAKMEM_FRONT_REFILL_H

#include "base/misuse.h"
#include "front/cache.h"

/* Fills the empty stack of a class and returns one block more; null without memory. `*found`: what
 * came to light of other blocks. */
void *cache_refill(struct cache *cache, unsigned cls, struct finding *found);

/* Pushes p after the older part of a full stack is flushed. */
struct finding cache_give(struct cache *cache, unsigned stack, void *p);

#endif

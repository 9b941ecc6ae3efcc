/* Stacks adapt to what their thread does: their capacities, as capacity_step decides
 * (learn/capacity.h). The owner calls these functions, with the cache's lock. */
#ifndef HAKMEM_FRONT_ADAPT_H
#define HAKMEM_FRONT_ADAPT_H

#include "front/cache.h"
#include "learn/capacity.h"

/* What all stacks of a thread should hold at most, of as many threads as there are. */
struct capacity_share cache_share(const struct cache *cache);

/* The first capacity of a stack whose first array is there. */
void stack_start_capacity(struct cache *cache, unsigned stack);

/* A stack of blocks of thin slabs was full: it may hold more, if the thread's share and the options
 * allow it. */
void stack_grow_thin(struct cache *cache, unsigned stack);

/* What happened to a stack; `seen` has its event, and what else is known of it. */
void stack_adapt(struct cache *cache, unsigned stack, struct capacity_seen seen);

#endif

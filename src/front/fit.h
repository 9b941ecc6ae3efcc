/* Stacks that fit what their thread does: their capacities, as the engine says (learn/capacity.h).
 * All with the cache's lock, by its owner. */
#ifndef HAKMEM_FRONT_FIT_H
#define HAKMEM_FRONT_FIT_H

#include "front/cache.h"
#include "learn/capacity.h"

/* The first capacity of a stack whose first array is there. */
void stack_start_capacity(struct cache *cache, unsigned cls);

/* What happened to a stack; `seen` has its event, and what else is known of it. */
void stack_fit(struct cache *cache, unsigned cls, struct capacity_seen seen);

#endif

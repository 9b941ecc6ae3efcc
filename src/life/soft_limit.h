/* What follows when the heap passes the option soft_limit_bytes, which back/use.c notes. */
#ifndef HAKMEM_LIFE_SOFT_LIMIT_H
#define HAKMEM_LIFE_SOFT_LIMIT_H

#include "back/use.h"
#include "base/atomic.h"

struct cache;

/* Who is called when the soft limit is passed; null: nobody. No lock is held. */
typedef void (*soft_limit_called)(void *argument);
void soft_limit_listen(soft_limit_called called, void *argument);

/* Whether the soft limit is passed and nobody has acted on it. */
static inline bool soft_limit_waits(void) { return unlikely(load_relaxed(&limits.passed)); }

/* Gives back what is kept, and calls who wants to be called if that is not enough. No lock is held,
 * and the thread may come back by the slow path. `mine` is its cache, or null. */
void soft_limit_act(struct cache *mine);

#endif

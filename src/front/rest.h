/* A thread that has given back nearly all that it took, by frees alone, has nothing to do with what
 * its stacks hold: it empties them and rests, since nobody else can take from them while it sleeps.
 * One that comes back soon is at work, and the next time that it stops may be as short. */
#ifndef HAKMEM_FRONT_REST_H
#define HAKMEM_FRONT_REST_H

#include "front/cache.h"

/* For the owner in the slow path, where a stack is full: whether it is to empty all of them, and
 * keep nothing until its next refill. */
bool thread_comes_to_rest(const struct cache *cache);

/* One that rests, until it allocates; and one that frees what others allocated, while little is in
 * use. */
bool thread_still_rests(const struct cache *cache);

#endif

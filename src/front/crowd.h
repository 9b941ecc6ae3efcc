/* Rules for many threads. A thread can take blocks from another thread's stacks only with a barrier
 * on every processor (theft.h), which sandboxes may forbid. So if there are many threads, each
 * keeps little by itself in case it falls asleep: its stacks begin small (adapt.h), it empties them
 * when it has given back nearly all blocks, and it gives back what it learned to keep while there
 * were fewer threads. */
#ifndef HAKMEM_FRONT_CROWD_H
#define HAKMEM_FRONT_CROWD_H

#include "front/cache.h"

/* Whether the program has little of what this thread took, and its stacks hold little else. */
bool crowd_holds_little(const struct cache *cache);

/* For the owner in the slow path, where a stack is full: whether it is to empty all of them, and
 * keep nothing until its next refill. */
bool crowd_comes_to_rest(struct cache *cache);

/* One that rests, until it allocates; and one that frees what others allocated, while little is in
 * use. */
bool crowd_still_rests(const struct cache *cache);

/* After a new thread has its cache: has others give back what is too much for so many. */
void crowd_cut(void);

#endif

/* Blocks that were freed while a fork held the heap for long: they are noted, in the reserve and
 * not in the blocks unless there is no memory, and freed when it is over, by the forking thread, in
 * the parent and in the child, or by who noted one a moment too late. */
#ifndef HAKMEM_FRONT_DEFERRED_H
#define HAKMEM_FRONT_DEFERRED_H

#include "base/misuse.h"

/* Notes p, a block of the heap, for a thread that may not enter. Returns as `deferred_drain` where
 * the fork has ended meanwhile. */
struct finding deferred_put(void *p);

/* Frees what was noted, unless a fork holds the heap; the first wrong block found. The caller holds
 * no lock. */
struct finding deferred_drain(void);

#endif

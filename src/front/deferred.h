/* Blocks that were freed while a long fork held the heap. They are noted in the reserve, or, if
 * there is no memory, linked through the blocks. When the fork is over the forking thread frees
 * them, in the parent and in the child. If a thread notes a block just after that, it frees the
 * block itself. */
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

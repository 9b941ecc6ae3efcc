/* Closes the fast paths and opens them again, by the reasons of base/policy.h. It costs nothing
 * while they are open:
 *
 *   taking  the table of classes (heap/classes.h) names no bin, or the one of blocks taken ahead
 *   giving  the inverses in a cache's bins are 0: then no block begins anywhere
 *   both    a thread in a tight loop may be in the middle of one of these; where that matters its
 *           cache is taken from it
 *
 * Every change computes the state anew from all reasons. Reasons of all caches are set before any
 * cache is closed, and a cache is closed and opened under its lock, so none is lost between
 * threads. Another process takes no lock: it writes its reason first, then the inverses, and who
 * opens looks at the reasons once more after it. tests/models/closing.pml. */
#ifndef HAKMEM_FRONT_CLOSING_H
#define HAKMEM_FRONT_CLOSING_H

#include "base/policy.h"
#include "front/cache.h"

/* For all caches, those to come included. With the lock of threads without a cache, where the
 * reason closes taking or giving; false where malloc can't be closed. When it returns every thread
 * is in the middle of one call through its cache at most on x86; elsewhere it is soon. */
bool heap_close(enum closing reason, bool on);

/* For one, and one of its reasons. The caller holds its lock. */
void cache_close(struct cache *cache, enum closing reason, bool on);

/* Of a new cache, and of a stack that is begun. */
void cache_settle(struct cache *cache);
void stack_settle_closing(struct cache *cache, unsigned stack);

/* What another process closed opens. */
void heap_open_ordered(void);

/* Where it says that it did: not 0. */
extern uint32_t closed_from_outside HIDDEN;

#endif

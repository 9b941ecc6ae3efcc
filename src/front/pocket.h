/* A thread's pocket: the large block that it freed last, kept for its next malloc of that size. A
 * buffer that comes and goes then needs no lock and no search. A malloc of another size first puts
 * the block back, so the pocket never holds memory that could have been used.
 *
 * Only the owner puts a block there. The owner, a thief, or the end of the thread takes it: the
 * thread that changes the block's entry in the map has it. So a pointer that stays in a pocket
 * after that does no harm. */
#ifndef HAKMEM_FRONT_POCKET_H
#define HAKMEM_FRONT_POCKET_H

#include "base/misuse.h"
#include "front/cache.h"

/* Frees p, whose bin is large, huge or parked, into the pocket of the calling thread's cache; or,
 * without one, as large_give. */
struct finding pocket_put(struct cache *cache, void *p, unsigned bin);

/* What is in the pocket if n bytes fit; null else, and the pocket is empty. */
void *pocket_take(struct cache *cache, size_t n);

/* Frees what is in any cache's pocket. */
void pocket_empty(struct cache *cache);

/* Frees what has been in the pocket of the calling thread's cache at the last call already. */
void pocket_age(struct cache *cache);

#endif

/* While a heap profile is on, malloc takes blocks of up to 640 bytes from small stacks of their
 * own. Only the slow path fills them, from the class's stack, with AHEAD_MOST blocks at most, and
 * counts these blocks. free pushes where it always does. So malloc comes to the slow path again and
 * again, also in a program that frees each block at once. These stacks are the owner's alone. Their
 * blocks count as free in a thread's cache. */
#ifndef HAKMEM_FRONT_AHEAD_H
#define HAKMEM_FRONT_AHEAD_H

#include "front/cache.h"

/* All are empty. */
void ahead_close(struct cache *cache);

/* The blocks of the class, where any are; another thread may find too many. */
size_t ahead_used(const struct cache *cache, unsigned cls, void ***blocks);

/* For the owner, whose stack of the class here is empty: up to n blocks come from the other stack.
 * How many. */
size_t ahead_fill(struct cache *cache, unsigned cls, size_t n);

/* The next, or null. All of the owner's allocations of the class have to take these first, since
 * they are counted already: what took others would be sampled more often. */
FAST void *ahead_take(struct cache *cache, unsigned cls)
{
    void *p;
    size_t offset = offsetof(struct cache, ahead) + cls * sizeof(struct ahead);
    return cls < AHEAD_CLASSES && cache_pop(cache, offset, &p) ? p : NULL;
}

/* Whether p is among them. */
bool ahead_holds(const struct cache *cache, unsigned cls, const void *p);

#endif

/* The arrays of a cache's stacks, in chunks that belong to the cache. */
#ifndef HAKMEM_FRONT_ARRAYS_H
#define HAKMEM_FRONT_ARRAYS_H

#include "front/cache.h"

/* The first chunk of a new cache; false without memory. */
bool arrays_start(struct cache *cache);

/* Forgets all arrays; room for the first ones of all classes is set aside. */
void arrays_reset(struct cache *cache);

/* A class's first array; there is always room for it. */
void **array_first(struct cache *cache, unsigned stack);

/* An array of so many words, 10 * 2^n; null without memory, or beyond the largest. And back. */
void **array_take(struct cache *cache, size_t words);
void array_give(struct cache *cache, void **array, size_t words);

/* Gives the chunks' pages back to the kernel; the arrays then hold zeroes. */
void arrays_purge(struct cache *cache);

#endif

/* All stacks of a cache, for a thread that holds its lock: they are set up and emptied. For the
 * files of front/, and for api/door.c. */
#ifndef HAKMEM_FRONT_STACKS_H
#define HAKMEM_FRONT_STACKS_H

#include "base/misuse.h"
#include "front/cache.h"

/* The first stack from this one on that is begun, or STACKS. */
unsigned begun_from(const struct cache *cache, unsigned stack);

/* Its stack is empty, and full. */
void bin_close(struct bin *bin);

/* No stack is begun any more. */
void cache_reset(struct cache *cache);

/* Begins the stack if it is not. */
void stack_settle(struct cache *cache, unsigned stack);

/* Frees the n lowest of a stack: those that were pushed first. */
struct finding stack_put_oldest(struct cache *cache, unsigned stack, size_t n, bool by_transfer);

/* Or all of it; and all of the stacks from `first` on, before `end`. The first wrong block found.
 */
struct finding stack_put_all(struct cache *cache, unsigned stack);
struct finding stacks_put(struct cache *cache, unsigned first, unsigned end);

/* Bytes that all stacks hold. */
size_t stacks_bytes(const struct cache *cache);

/* The thread is at work again, and ebbs no more. */
void cache_flows(struct cache *cache);

/* The thread took so many bytes from slabs, or gave so many back. */
void cache_took(struct cache *cache, size_t bytes);
void cache_gave(struct cache *cache, size_t bytes);

#endif

/* Shards, each a lock and its slabs. There are about as many as CPUs and never more than threads. A
 * thread takes new blocks from one shard; blocks go back to the shard that their slab names,
 * whoever frees them. */
#ifndef HAKMEM_HEAP_SHARDS_H
#define HAKMEM_HEAP_SHARDS_H

#include "base/defs.h"
#include "base/misuse.h"

struct pairing_node;

/* How many shards there may be: CPUs of the process at its start. */
void shards_start(unsigned cpus);

/* The shard with the fewest threads, counted as one more there; and its end. */
unsigned shard_join(void);
void shard_leave(unsigned index);

/* Takes up to n blocks of a class, lowest address first, and stores them to the slots before
 * `end` as slab_take does. Fewer than n when the slabs begun hold no more: a new one is begun only
 * for the first block. None only without memory. Returns how many. */
size_t shard_take(unsigned index, unsigned cls, void **end, size_t n);

/* Frees n blocks of any shards. What is no taken block is left out; the first such is returned. */
struct finding shards_put(void **blocks, size_t n);

/* Whether p, which is in a slab by the map, is a block that is not free; and which shard it has. */
enum misuse shards_check(const void *p);
unsigned shard_of(const void *p);

/* From now on threads join the first `most` shards only, at least one. */
void shards_limit(unsigned most);

/* For the accounting, which holds all locks: how many shards there are, the root of a shard's
 * partial slabs of a class, the threads that have joined it. */
unsigned shards_made(void);
struct pairing_node **shard_partial(unsigned index, unsigned cls);
unsigned *shard_threads(unsigned index);

#endif

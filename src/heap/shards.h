/* Shards, each a lock and its slabs. There are as many as threads ran at once, at most as many as
 * CPUs, and at most SHARDS_MOST. A thread takes new blocks from one shard, the one that the fewest
 * threads have joined. A block goes back to the shard of its slab, whichever thread frees it. */
#ifndef HAKMEM_HEAP_SHARDS_H
#define HAKMEM_HEAP_SHARDS_H

#include "base/defs.h"
#include "base/misuse.h"

struct pairing_node;
struct slab;

void shards_start(void);

/* A thread joins the shard with the fewest threads, whose index is returned; and leaves it. One
 * thread at a time joins. */
unsigned shard_join(void);
void shard_leave(unsigned index);

/* Takes up to n blocks of a class, lowest address first, and stores them to the slots before
 * `end` as slab_take does. Returns how many. They are fewer than n if the partly used slabs have no
 * more, because a new slab is made only for the first block; 0 only without memory. `wanted`: pages
 * that come back for them went back too soon. */
size_t shard_take(unsigned index, unsigned cls, void **end, size_t n, bool wanted);

/* Whether the class's slabs in the shard are thin (learn/compaction.h), and whether the slab of p
 * is, which is then named; looks without the lock. */
bool shard_is_thin(unsigned index, unsigned cls);
bool shard_slab_is_thin(const void *p, struct slab **slab);

/* As shards_put, for one block, which was in that slab. */
struct finding shards_put_in(struct slab *slab, void *p);

/* A block of whole slices from shard `index`, of a class of such blocks, at a multiple of `align`
 * slices; null without memory. */
void *shard_take_aligned(unsigned index, unsigned cls, size_t align);

/* Frees n blocks of any shards. An address that is not a taken block is left out; the first such is
 * returned. */
struct finding shards_put(void **blocks, size_t n);

/* For p that the map says is in a slab: whether it is a block that is not free; which shard the
 * slab has. */
enum misuse shards_check(const void *p);
unsigned shard_of(const void *p);

/* From now on threads join only the first `most` shards, at least one. */
void shards_limit(unsigned most);

/* For the accounting, which holds all locks: how many shards there are; the root of a shard's
 * partial slabs of a class, and what these have together; the threads that have joined it; and the
 * bytes of blocks that went past the stacks to compact it. */
unsigned shards_made(void);
struct pairing_node **shard_partial(unsigned index, unsigned cls);
unsigned *shard_threads(unsigned index);
size_t *shard_begun_blocks(unsigned index, unsigned cls);
size_t *shard_begun_free(unsigned index, unsigned cls);
size_t shard_compacted(unsigned index);

#endif

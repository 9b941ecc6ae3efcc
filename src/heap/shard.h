/* A shard: a lock and its slabs. There are about as many as CPUs and never more than threads. A
 * thread takes new blocks from one shard; blocks go back to the shard that their slab names,
 * whoever frees them. */
#ifndef HAKMEM_HEAP_SHARD_H
#define HAKMEM_HEAP_SHARD_H

#include "base/defs.h"
#include "base/lowest.h"
#include "base/misuse.h"
#include "heap/classes.h"

struct slab;

#define SHARDS_MOST 64

/* How many shards there may be: CPUs of the process at its start. */
void shards_start(unsigned cpus);

/* The shard with the fewest threads, counted as one more there; and its end. */
unsigned shard_join(void);
void shard_leave(unsigned index);

/* Takes up to n blocks of a class, lowest address first, and stores them to the places before
 * `end` as slab_take does. Fewer than n when the slabs begun hold no more: a new one is begun only
 * for the first block. None only without memory. Returns how many. */
size_t shard_take(unsigned index, unsigned cls, void **end, size_t n);

/* Frees n blocks of any shards. What is no taken block is left out; the first such is returned. */
struct finding shards_put(void **blocks, size_t n);

/* Gives back to the kernel what pages are free in slabs that became sparse before the allocation
 * clock said `before`, those that did so first first; `*most` slabs are looked at, less what is
 * left in it: more than 0 when there were no more. Those that are wanted again while the clock says
 * at most `soon_until` count as having gone too early. Returns bytes. One thread at a time. */
size_t shards_purge(size_t before, size_t soon_until, size_t *most);

/* Whether there are slabs that may have such pages. */
bool shards_sparse(void);

/* Bytes of the block at p in this slab, which may be null; 0 if none begins there. */
size_t shards_usable(const void *p, const struct slab *slab);

/* Makes the block of whole slices at p hold n bytes, more than it has, where it stands, if the
 * slices behind it are free. */
bool shards_resize(const void *p, size_t n);

/* Notes that p, a block of whole slices, is handed to the program for n bytes. Whether it still
 * holds zeroes only. */
bool shards_hand_out(const void *p, size_t n);

/* Notes that p, by the map a block of whole slices, is freed, and what class it has. Exact: of any
 * number of calls for one block, on any threads, one gets it. */
enum misuse shards_take_back(const void *p, unsigned *cls);

/* Whether p, which is in a slab by the map, is a block that is not free; and which shard it has. */
enum misuse shards_check(const void *p);
unsigned shard_of(const void *p);

/* From now on threads join the first `most` shards only, at least one. */
void shards_limit(unsigned most);

/* For the census, which holds all locks: how many shards there are, the root of a shard's partial
 * slabs of a class, the threads that have joined it. */
unsigned shards_made(void);
struct low_node **shard_partial(unsigned index, unsigned cls);
unsigned *shard_threads(unsigned index);

#endif

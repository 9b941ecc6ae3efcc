/* Shards, each a lock and its slabs. There are as many as threads ran at once, at most as many as
 * CPUs, and at most SHARDS_MOST. A thread takes new blocks from one shard, the one that the fewest
 * threads have joined. A block goes back to the shard of its slab, whichever thread frees it. */
#ifndef HAKMEM_HEAP_SHARDS_H
#define HAKMEM_HEAP_SHARDS_H

#include "base/defs.h"
#include "base/misuse.h"
#include "heap/classes.h"
#include "heap/slab.h"

/* Starts the shard of sampled blocks, before its first one; false without memory. */
bool shards_start_sampled(void);

/* All that are there: for (unsigned i = 0; i < SHARDS_MOST; i = shard_after(i)). */
unsigned shard_after(unsigned index);

void shards_start(void);

/* A thread joins the shard with the fewest threads, whose index is returned; and leaves it. One
 * thread at a time joins. */
unsigned shard_join(void);
void shard_leave(unsigned index);

/* Takes up to n blocks of a class, lowest address first, and stores them to the slots before
 * `end` as slab_take does. Returns how many. They are fewer than n if the partly used slabs have no
 * more, because a new slab is made only for the first block; 0 only without memory. */
size_t shard_take(unsigned index, unsigned cls, void **end, size_t n);

/* Whether the class compacts in the shard (slab.h); looks without the lock. */
bool shard_compacts(unsigned index, unsigned cls);

/* Whether p, a taken block of a slab, is worth moving to the lowest place of its shard, whose index
 * is stored: its own slab could so become empty. */
bool shards_attract(const void *p, unsigned *index);

/* Bytes of slabs that could be empty if taken blocks filled the free places of others, but for
 * pages that were given back. */
size_t shards_gain(void);

/* Bytes of free blocks in begun slabs, about, and of these in pages that went back. Needs no lock.
 */
struct slabs_free {
    size_t bytes, absent;
};
struct slabs_free shards_free(void);

/* A block of whole slices from shard `index`, of a class of such blocks, at a multiple of `align`
 * slices; null without memory. */
void *shard_take_aligned(unsigned index, unsigned cls, size_t align);

/* Frees n blocks of any shards. An address that is not a taken block is left out; the first such is
 * returned. */
struct finding shards_put(void **blocks, size_t n);

/* Where free blocks are zero: one of a slab to which something wrote; null where there is none
 * among the first `*most` bytes, which it takes from that. Nobody waits for a lock here. */
void *shards_written(size_t *most);

/* For p that the map says is in a slab: whether it is a block that is not free; which shard the
 * slab has. */
enum misuse shards_check(const void *p);
unsigned shard_of(const void *p);

/* From now on threads join only the first `most` shards, at least one. */
void shards_limit(unsigned most);

/* For the accounting, which holds all locks: how many shards there are; a shard's partial
 * slabs of a class, and what these are together; and the threads that have joined it. */
unsigned shards_made(void);
struct pairing_heap *shard_partial(unsigned index, unsigned cls);
unsigned *shard_threads(unsigned index);
size_t shard_bytes(unsigned index); /* of metadata: the first is none */
struct begun *shard_begun(unsigned index, unsigned cls);

/* ---- blocks of whole slices ----
 *
 * From 33 KiB to 2 MiB: each is a slab of one block. */

/* Notes that p, a block of whole slices, is handed to the program for n bytes. Whether it still
 * holds zeroes only. */
bool whole_hand_out(const void *p, size_t n);

/* Notes that p, by the map a block of whole slices, is freed, and what class it has. Exact: of any
 * number of calls for one block, on any threads, one gets it. */
enum misuse whole_take_back(const void *p, unsigned *cls);

/* Makes the block of whole slices at p hold n bytes, more than it has, where it stands, if the
 * slices behind it are free. */
bool whole_resize(const void *p, size_t n);

/* ---- free pages ----
 *
 * Pages that are free inside slabs in use: which they are, and how they go back to the kernel
 * (page_purge.c). */

/* The pages, as a set, of which no block that is taken has a byte and which may be resident. */
uint64_t slab_free_pages(const struct slab *slab);

/* Gives back to the kernel what pages are free in slabs that became sparse before the allocation
 * clock said `before`, those that did so first first. Looks at so many slabs, and stops when
 * so many bytes have gone; what is left of both stays in `room`: slabs and bytes when there were no
 * more. Returns bytes. One thread at a time. */
#define STEP_SLABS 256 /* of one step: enough for what one call may give back */
struct purge_room {
    size_t slabs, bytes;
};
size_t shards_purge(size_t before, struct purge_room *room);

/* Has all slabs looked at that have so many free blocks that a page may be free, also those that
 * are too full for that to be likely. Walks through all of them. */
void shards_sparse_anew(void);

/* Whether there are slabs that may have such pages. */
bool shards_sparse(void);

#endif

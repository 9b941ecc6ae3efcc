/* A shard: a lock, and its slabs that have free blocks. Only for the files of heap/; others use
 * shards.h. */
#ifndef HAKMEM_HEAP_SHARD_H
#define HAKMEM_HEAP_SHARD_H

#include "base/atomic.h"
#include "base/counters.h"
#include "base/list.h"
#include "heap/slab.h"
#include "learn/compaction.h"
#include "os/lock.h"

struct shard {
    struct lock lock;
    unsigned index;                       /* constant */
    unsigned threads;                     /* atomic */
    struct pairing_heap partial[CLASSES]; /* slabs with free and taken blocks; lock: shard */
    struct begun begun[CLASSES];          /* lock: shard */
    size_t free, absent; /* of all classes, bytes of free blocks, and pages; lock: shard */
    struct list sparse;  /* slabs whose pages may be free, newest first; lock: shard */
} __attribute__((aligned(CACHE_LINE)));

extern struct shard first_shard HIDDEN;

/* The first stands for those that are not made yet. Atomic. */
extern struct shard *shards[SHARDS_MOST] HIDDEN;
extern unsigned shard_count HIDDEN; /* grows; atomic */

/* Slabs of a class of small blocks, in all shards. Atomic. */
extern size_t class_slabs[CLASS_SLICES_FIRST] HIDDEN;

/* Slabs in the shards' sparse lists. Atomic. */
extern size_t slabs_sparse HIDDEN;

static inline struct slab *lowest_partial(struct shard *shard, unsigned cls)
{
    struct pairing_node *root = load_relaxed(&shard->partial[cls].root);
    return (struct slab *)root;
}

/* Enters the slab in the map, for `owner`, which is the slab, or null: then out of it. */
void slab_map(const struct slab *slab, void *owner);

/* Blocks of partial slabs become free, or taken: then less than nothing. */
static inline void partial_frees(struct shard *shard, unsigned cls, size_t blocks)
{
    shard->begun[cls].free += blocks;
    store_relaxed(&shard->free, shard->free + blocks * size_classes[cls].size);
}

static inline void partial_counts(struct shard *shard, unsigned cls, size_t blocks)
{
    shard->begun[cls].blocks += blocks;
}

/* The same of their pages that went back. */
void partial_absent(struct shard *shard, unsigned cls, size_t pages);

/* A slab comes to its shard's partial ones, or leaves them; with its free blocks. */
static inline void partial_add(struct shard *shard, struct slab *slab)
{
    partial_counts(shard, slab->cls, slab->places);
    partial_frees(shard, slab->cls, slab->free);
    if (unlikely(slab->absent != 0))
        partial_absent(shard, slab->cls, count_bits(slab->absent));
    pairing_add(&shard->partial[slab->cls], &slab->node);
}

static inline void partial_remove(struct shard *shard, struct slab *slab)
{
    partial_counts(shard, slab->cls, -(size_t)slab->places);
    partial_frees(shard, slab->cls, -(size_t)slab->free);
    if (unlikely(slab->absent != 0))
        partial_absent(shard, slab->cls, -(size_t)count_bits(slab->absent));
    pairing_remove(&shard->partial[slab->cls], &slab->node);
}

/* Adds the slab to its shard's sparse ones, and takes it out. */
static inline void slab_note_sparse(struct shard *shard, struct slab *slab)
{
    slab->stamp = clock_now();
    list_push(&shard->sparse, &slab->sparse);
    add_relaxed(&slabs_sparse, 1);
}
void slab_not_sparse(struct slab *slab);

/* Locks the shard of the slab that p is in, and releases `*held` if that is another. Null where the
 * map says that p is in no slab. */
struct slab *slab_lock(const void *p, struct shard **held);

/* Whether pages of the slab may be free. */
static inline bool slab_worth_a_look(const struct slab *slab)
{
    const struct size_class *c = &size_classes[slab->cls];
    return slab->free > slab->examined && list_empty(&slab->sparse) && slab->free >= c->sparse &&
           look_at_slab(slab->free - slab->examined, slab->places - slab->free, slab->thin);
}

/* Whether the slab, of which blocks became free, belongs where it is. */
static inline bool slab_is_settled(const struct shard *shard, const struct slab *slab,
                                   bool was_full)
{
    return !was_full && slab->free < slab->places && !slab_worth_a_look(slab) &&
           (slab->thin || !shard->begun[slab->cls].compacts);
}

/* After blocks of the slab became free: moves it to where it then belongs. One that is all free
 * leaves the shard and the map and is added to `*emptied`. */
void slab_settle(struct shard *shard, struct slab *slab, bool was_full,
                 struct pairing_node **emptied);

/* Gives back the slices and the descriptors of these slabs. Without the lock of any shard. */
void slabs_give_back(struct pairing_node *emptied);

/* ---- thin slabs ----
 *
 * Those of a class that compacts (learn/compaction.h) of which most blocks are free. In the map
 * they name the class's second stack, from which malloc never takes: what is freed there goes back
 * to the slabs, many blocks at once. */

/* After blocks of the slab became free, or were taken: whether it is thin now. */
void slab_settle_thin(struct shard *shard, struct slab *slab);

/* After many blocks of the class became free: begins to compact, or ends. */
void shard_settle_compaction(struct shard *shard, unsigned cls);

#endif

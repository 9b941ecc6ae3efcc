/* A slab: one slice that holds blocks of one class, or up to 32 for one block. Its descriptor, with
 * a bit for every free block, lies in metadata; no part of it is in the blocks. A block in a
 * thread's stack or in a transfer cache counts as taken here.
 *
 * The caller of every function holds the lock of the slab's shard. */
#ifndef HAKMEM_HEAP_SLAB_H
#define HAKMEM_HEAP_SLAB_H

#include "base/atomic.h"
#include "base/defs.h"
#include "base/list.h"
#include "base/misuse.h"
#include "base/policy.h"
#include "heap/classes.h"
#include "heap/hardening.h"
#include "learn/compaction.h"
#include "os/lock.h"
#include "os/os.h"

struct superslab;

struct slab {
    struct pairing_node node; /* its shard's partial slabs, by address of base; lock: shard */
    char *base;               /* constant while the slab lives */
    struct superslab *home;   /* constant while the slab lives */
    uint64_t summary;         /* words with the bit of a free block; lock: shard */
    uint16_t free;            /* free blocks that can be handed out; lock: shard */
    uint16_t shard;           /* atomic; changes under the locks of both shards */
    uint8_t cls;              /* constant while the slab lives */
    bool zero;                /* its one block was never used; for the holder of the block */
    uint16_t examined;        /* free blocks when its pages were last looked at, or fewer; shard */
    bool thin;                /* see below; lock: shard */
    uint16_t places;          /* blocks that can be handed out; constant while the slab lives */
    uint32_t usable;          /* bytes of its one block the program may use; who holds the block;
                                 atomic for accounts */
    uint64_t absent;    /* pages given back to the kernel, not handed out since; atomic for those
                           who peek; lock: shard */
    struct list sparse; /* its shard's slabs whose pages may be free; lock: shard */
    size_t stamp;       /* the allocation clock when it was put there; lock: shard */
    uint64_t words[];   /* a set bit is a free block, or one that is never handed out
                           (hardened.h); lock: shard */
};

/* Shards (shards.h) are known by their indices. The last one is no thread's: blocks that a profile
 * watches come from it, and their slabs name BIN_SAMPLED in the map. */
#define SHARDS_MOST 64
#define SHARD_SAMPLED (SHARDS_MOST - 1)

/* A class's slabs in a shard that have free blocks and taken ones, together. */
struct begun {
    size_t blocks, free;
    size_t absent;      /* pages of theirs that were given back and not handed out since */
    bool compacts;      /* atomic; the rest changes with thin slabs */
    size_t compactions; /* times it began to */
    size_t compacted;   /* bytes of blocks that went back to thin slabs, ever */
    size_t regained;    /* bytes of thin slabs whose pages went back, or that became empty, ever */
};

/* Bytes of the descriptor of a slab of this class. */
FAST size_t slab_bytes(const struct size_class *c)
{
    return sizeof(struct slab) + (c->blocks + 63u) / 64u * sizeof(uint64_t);
}

/* All blocks free. */
void slab_init(struct slab *slab, unsigned cls, void *base, struct superslab *home);

/* Takes up to n of the lowest free blocks and stores them to the slots before `end`, the lowest
 * block last in memory, so that a stack pops them in address order. Returns how many. */
size_t slab_take(struct slab *slab, void **end, size_t n);

/* As slab_take, but only blocks that share no cache line with a taken block: of small blocks, those
 * whose whole group of neighbours is free. */
size_t slab_take_lines(struct slab *slab, void **end, size_t n);

/* The same in a hardened heap: blocks chosen by chance, if `shuffles`. */
size_t slab_take_any(struct slab *slab, void **end, size_t n);

/* Frees blocks, up to the first that is not in the slab or that is wrong, which `*what` then names.
 * Returns how many it freed. */
size_t slab_put(struct slab *slab, void *const *blocks, size_t n, enum misuse *what);

/* Where free blocks are zero: one to which something wrote; null where there is none among the
 * first
 * `*most` bytes, which it takes from that. */
void *slab_written(const struct slab *slab, size_t *most);

/* Of a block in use, in a hardened heap: whether the word in front of it is as the block before it
 * left it, which is in the same slab. */
FAST bool slab_inside_stands(const void *p, unsigned cls)
{
    const char *before = (const char *)p - size_classes[cls].size;
    uint64_t found = load_relaxed(canary_at(before, cls));
    return likely(found == canary_of(before)) || found == 0 || canary_is_whole(before, found);
}

/* The same of the first block of a slab, and of one behind a guard page; true if the kernel made
 * that one, for what wrote there ended at once. */
bool slab_edge_stands(const void *p, unsigned cls);

/* Whether nothing wrote to the word in front of p, a block of the class. */
FAST bool slab_before_stands(const void *p, unsigned cls)
{
    bool edge = (uintptr_t)p % SLICE == 0 || guard_pages_hold((const char *)p - 1, cls);
    return unlikely(edge) ? slab_edge_stands(p, cls) : slab_inside_stands(p, cls);
}

/* Whether a block begins at p; needs no lock. */
bool slab_begins(const struct slab *slab, const void *p);

/* Bytes of the block at p in this slab, which may be null; 0 if none begins there. Needs no lock.
 */
size_t slab_usable(const void *p, const struct slab *slab);

/* Whether a block begins at p and is taken. */
enum misuse slab_check(const struct slab *slab, const void *p);

/* ---- a shard ----
 *
 * A shard: a lock, and its slabs that have free blocks. Only for the files of heap/; others use
 * shards.h. */

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

/* The same of their pages that went back. */
void partial_absent(struct shard *shard, unsigned cls, size_t pages);

/* A slab comes to its shard's partial ones, or leaves them; with its free blocks. */
static inline void partial_add(struct shard *shard, struct slab *slab)
{
    shard->begun[slab->cls].blocks += slab->places;
    partial_frees(shard, slab->cls, slab->free);
    if (unlikely(slab->absent != 0))
        partial_absent(shard, slab->cls, count_bits(slab->absent));
    pairing_add(&shard->partial[slab->cls], &slab->node);
}

static inline void partial_remove(struct shard *shard, struct slab *slab)
{
    shard->begun[slab->cls].blocks -= slab->places;
    partial_frees(shard, slab->cls, -(size_t)slab->free);
    if (unlikely(slab->absent != 0))
        partial_absent(shard, slab->cls, -(size_t)count_bits(slab->absent));
    pairing_remove(&shard->partial[slab->cls], &slab->node);
}

/* n blocks were handed out of a slab with absent pages, which come back. */
void slab_bring_back(struct shard *shard, struct slab *slab, void *const *blocks, size_t n);

/* Adds the slab to its shard's sparse ones, and takes it out. */
void slab_note_sparse(struct shard *shard, struct slab *slab);
void slab_not_sparse(struct slab *slab);

/* Locks the shard of the slab that p is in, and releases `*held` if that is another. Null where the
 * map says that p is in no slab. */
struct slab *slab_lock(const void *p, struct shard **held);

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

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
#include "heap/classes.h"
#include "heap/hardening.h"
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
    bool thin;                /* see shard.h; lock: shard */
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

/* Notes that n blocks were handed out of a slab with absent pages; returns how many pages that
 * brings back. */
unsigned slab_bring_back(struct slab *slab, void *const *blocks, size_t n);

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

/* Whether the slab's page at p went back to the kernel and nothing in it was handed out since: then
 * no block at p is in use. Needs no lock: while a block is in use none of its pages is absent. */
FAST bool slab_is_absent(const struct slab *slab, const void *p)
{
    uint64_t absent = load_relaxed(&slab->absent);
    return unlikely(absent != 0) &&
           (absent >> (size_t)((const char *)p - slab->base) / os_page % 64 & 1) != 0;
}

/* Whether a block begins at p and is taken. */
enum misuse slab_check(const struct slab *slab, const void *p);

#endif

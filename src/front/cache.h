/* A thread's cache: for each class a stack of pointers to free blocks. malloc pops and free pushes,
 * no matter which thread allocated the block. All that they write into a block is the seal. Blocks
 * of slabs that are mostly free may have a second stack, from which malloc never pops
 * (heap/slab.h).
 *
 *   malloc -> class_bin_offset -> cache_pop      false: the slow path -> cache_refill
 *   free   -> map_bin_offset   -> cache_push     false: the slow path -> cache_give -> stack_flush
 *
 * A stack's lowest slot holds the window's base, the mark, where no block begins. So the load that
 * pops also finds out that a stack is empty. The topmost block is also stored next to the top.
 * malloc then needs no load that waits for the store of the last free (16 cycles for a pair of
 * random sizes instead of 20). A stack is full when its top has reached its limit. A thread without
 * a cache has one of two closed ones, whose stacks are both empty and full, so its first call takes
 * the slow path.
 *
 * Who may touch a cache, and why that is safe:
 *
 *   owner   the fast paths, without atomics. malloc lowers the top before it reads the block, so a
 *           thread that stops the owner anywhere sees by the top whether it may have read the slot.
 *   slow    the owner with the cache's lock; only here arrays, limits and capacities change.
 *   closer  takes every cache from its owner, for modes that must see each call (heap_close).
 *   forker  holds the lock of every cache. When the child needs blocks, it frees those in other
 *           threads' stacks. A block on its way to or from the program is lost to the child.
 *
 * tests/models has a model of each. */
#ifndef HAKMEM_FRONT_CACHE_H
#define HAKMEM_FRONT_CACHE_H

#include "back/map.h"
#include "base/atomic.h"
#include "base/defs.h"
#include "base/policy.h"
#include "heap/classes.h"
#include "learn/capacity.h"
#include "learn/laws.h"
#include "os/lock.h"
#include "record/ring.h"

#define BINS (BIN_FIRST + STACKS)

struct bin {
    void *topmost;    /* what lies at `top` */
    void **top;       /* the topmost block's slot, or the lowest slot, below all */
    void **limit;     /* the topmost slot; 0 where there is no room at all */
    uint64_t inverse; /* the class's (class_inverses); 0 where every free and realloc takes the slow
                         path (heap_close); atomic */
};

#define ROOM_MOST 16383 /* more than any array holds */

/* What the slow path knows of a stack. */
struct cold_bin {
    void **base; /* the lowest slot, which holds the window's base; null until the thread's first
                    call for the class, in the slow path */
    uint32_t room : 14;        /* blocks the array can hold */
    uint32_t direct_frees : 4; /* so many frees more go straight to their slabs */
    uint32_t seen : 14;        /* of a second stack: its blocks at the first one's last refill */
    uint16_t capacity;         /* blocks it may hold now, at most room */
    uint8_t streak : 7;        /* times in a row that it was empty, or full (learn/capacity.h) */
    uint8_t full : 1;          /* the last time it was full */
};

/* Arrays of stacks lie in chunks of their cache's own, which no other cache ever uses: an owner
 * that was stopped in the middle of a push writes its slot whenever it goes on. */
#define CHUNK_FIRST (32 * KiB)
#define CHUNK_LATER (160 * KiB)
#define CHUNKS_MOST 8

static inline size_t chunk_bytes(unsigned number)
{
    return number == 0 ? CHUNK_FIRST : CHUNK_LATER;
}

/* A stack that only malloc pops from (stacks.h): the part of a bin that it reads. */
#define AHEAD_CLASSES 26 /* the first: up to 640 bytes; a cache of 8 KiB has no room for more */
#define AHEAD_MOST 15    /* blocks */
struct ahead {
    void *topmost;
    void **top;
};

#define NO_WHOLE 1 /* of no bin */

#define HARDENED_FIRST 8 /* where in struct hardened the classes begin */

/* For a heap profile: blocks of each class up to the next sample, which counts, or up to where it
 * is drawn anew; 0 where it is to be drawn. By the class's bin. */
struct sampler {
    const char *name; /* of the call that is served, or null */
    size_t due;       /* the rate at which the block that is due was found to be so */
    uint64_t random;
    size_t rate;                         /* at which all were drawn */
    uint64_t drawn[(CLASSES + 63) / 64]; /* classes whose next sample is known, by bits */
    uint32_t gaps[BIN_FIRST + CLASSES];
    void *ahead[AHEAD_CLASSES][AHEAD_MOST + 1]; /* the mark, and blocks */
    struct tape tape;                           /* for a recording (api/recorded.c) */
};

struct cache {
    struct bin bins[BINS]; /* first: a bin offset is a distance from the start */
    struct cold_bin cold[STACKS];
    uint64_t begun[(STACKS + 63) / 64]; /* stacks that are begun; lock: cache */
    struct lock *lock;                  /* constant; null only in the constant caches */
    unsigned shard;
    unsigned hinted;        /* 1 + the shard of a block to move, or 0; the owner's (refill.h) */
    size_t capacity_bytes;  /* blocks that all stacks may hold, but those of large ones */
    size_t capacity_weight; /* the same, weighed (learn/capacity.h) */
    size_t large_bytes, large_most; /* what those hold, and may hold; the owner's (large.h) */
    size_t refills;                 /* counts, for statistics; atomic for those who peek */
    size_t flushes;
    size_t outflow;      /* bytes flushed beyond what was refilled; lock: cache */
    size_t large_told;   /* what use.stacked has of large_bytes; lock: cache */
    size_t untold;       /* bytes of large blocks freed that the clock does not know; the owner's */
    size_t untold_frees; /* of which so many, and all before; the owner's */
    size_t unclocked;    /* bytes given that the allocation clock does not know yet; lock: cache */
    size_t taken;        /* bytes refilled beyond those given back, or negative; lock: cache */
    size_t most_taken;   /* of these, at once since it ebbed last; lock: cache */
    size_t ebb;          /* while it ebbs, what its stacks may hold; else 0; lock: cache */
    size_t stays_until;  /* the time of day before which it does not ebb again; lock: cache */
    size_t began;        /* refills of those who had it before; the owner's */
    unsigned closings;   /* its own reasons (cache_close); atomic, changed under its lock */
    uint16_t whole;      /* what the map has for a block of whole slices, or NO_WHOLE: in constant
                            caches, and where free looks at more (cache_close); atomic */
    size_t ages;         /* how often its stacks grew older, of all times; lock: cache */
    bool large_used;     /* large blocks came or went since stacks_age looked; the owner's */
    bool shut;           /* emptied since all caches were closed; the owner's */
    bool asking;         /* the owner asks libc to tell its end; the owner's */
    bool fresh;          /* the owner has not taken malloc's slow path yet; the owner's */
    bool left;           /* its thread ended and could not end it; atomic */
    unsigned generation; /* the registry's; 0 where it is nobody's; atomic; lock: registry */
    struct cache **mine; /* its cache_mine, if its end will be told; atomic; lock: cache */
    struct cache *every; /* all caches that ever were; constant once it is there */
    struct cache *unused;      /* the next that is nobody's; lock: registry */
    void **first;              /* the next class's first array; lock: cache */
    char *bump, *end;          /* what is left of the chunk in use; lock: cache */
    unsigned chunk;            /* its number; lock: cache */
    unsigned chunk_count;      /* lock: cache */
    struct sampler *sampler;   /* null until the first profile; the owner's (api/sampled.h) */
    struct hardened *hardened; /* null without; the owner's (hardened.h) */
    struct ahead ahead[AHEAD_CLASSES];
    char *chunks[CHUNKS_MOST];
    void **spare[ARRAY_KINDS]; /* arrays outgrown, linked through their first word; lock: cache */
};

static_assert(offsetof(struct cache, bins) == 0 && sizeof(struct bin) == BIN_BYTES,
              "a bin's number times its bytes is its offset");
static_assert(sizeof(struct cache) <= 8 * KiB, "a sleeping thread keeps two pages, not three");

/* No cache yet: the thread's first call. No cache any more: calls of destructors that run late. */
extern struct cache cache_none HIDDEN;
extern struct cache cache_gone HIDDEN;

extern __thread struct cache *cache_mine HIDDEN; /* atomic: the closer may set it to `cache_none` */

FAST struct bin *cache_bin(struct cache *cache, size_t offset)
{
    struct bin *bin = (struct bin *)((char *)cache + offset);
    FORGET(bin);
    return bin;
}

/* ---- what free looks at, and what it leaves ----
 *
 * The second word of a free block of up to 32 KiB is the seal: free sets it, malloc takes it away.
 * A block that bears it when it is freed may be free already, which the slow path proves or refutes
 * (api/blocks.h); a program may have copied the word from memory that it never wrote. It is no
 * pointer, and one instruction holds it: its upper half is the sign of the lower one. */
#define SEAL ((uint64_t)0xffffffffc5ea1ed7)
typedef uint64_t __attribute__((may_alias)) block_word;

FAST bool block_sealed(const void *p) { return ((const block_word *)p)[1] == SEAL; }
FAST void block_seal(void *p) { ((block_word *)p)[1] = SEAL; }
FAST void block_unseal(void *p) { ((block_word *)p)[1] = 0; }

/* Whether a block of the class begins at p, a multiple of 16 in one of its slabs: see
 * class_inverses. */
FAST bool block_begins(const void *p, uint64_t inverse)
{
    return (uintptr_t)p % SLICE * inverse < inverse;
}

/* block_begins for the class of a bin. It reads the inverse twice, which saves a load. */
#define BIN_BLOCK_BEGINS(bin, p)                                 \
    __extension__({                                              \
        uint64_t rest = (uintptr_t)(p) % SLICE * (bin)->inverse; \
        FORGET(bin);                                             \
        rest < (bin)->inverse;                                   \
    })

/* A block of whole slices to *p; false when the stack is empty, as far as can be seen. */
FAST bool cache_pop_whole(struct cache *cache, size_t offset, void **p)
{
    struct bin *bin = cache_bin(cache, offset);
    STEP_DOWN(bin->top);
    void *topmost = load_own(&bin->topmost);
    FORGET_RESULT(topmost);
    *p = topmost;
    if (unlikely(topmost == window_mark())) {
        STEP_UP(bin->top);
        return false;
    }
    store_own(&bin->topmost, load_own(load_own(&bin->top)));
    return true;
}

/* A block of the class to *p; false when the stack is empty, as far as can be seen. */
FAST bool cache_pop(struct cache *cache, size_t offset, void **p)
{
    if (unlikely(!cache_pop_whole(cache, offset, p)))
        return false;
    block_unseal(*p);
    return true;
}

FAST void bin_push(struct bin *bin, void **top, void *p)
{
    store_own(&top[1], p);
    store_own(&bin->topmost, p);
    STEP_UP(bin->top);
}

/* False when no block of the bin's class begins at p, when the stack is full, and when p may be
 * free already. */
FAST bool cache_push_to(struct cache *cache, size_t offset, void *p)
{
    struct bin *bin = cache_bin(cache, offset);
    void **top = load_own(&bin->top);
    if (unlikely(top >= load_own(&bin->limit)) || unlikely(!BIN_BLOCK_BEGINS(bin, p)) ||
        unlikely(block_sealed(p)))
        return false;
    block_seal(p);
    bin_push(bin, top, p);
    return true;
}

/* The same for any p in the window. */
FAST bool cache_push(struct cache *cache, void *p)
{
    size_t offset;
    return likely(map_bin_offset(p, &offset)) && cache_push_to(cache, offset, p);
}

/* The inverse that a bin has while giving is not closed. */
FAST uint64_t inverse_of_offset(size_t offset)
{
    unsigned bin = (unsigned)(offset / BIN_BYTES);
    return likely(bin >= BIN_FIRST) ? class_inverses[stack_class(bin - BIN_FIRST)] : 0;
}

/* For the slow path: cache_push while giving is closed. */
static inline bool cache_push_untold(struct cache *cache, void *p)
{
    size_t offset = 0; /* as gcc 12 does not see that it is written */
    if (unlikely(!map_bin_offset(p, &offset)))
        return false;
    struct bin *bin = cache_bin(cache, offset);
    void **top = load_own(&bin->top);
    if (unlikely(top >= load_own(&bin->limit)) ||
        unlikely(!block_begins(p, inverse_of_offset(offset))) || unlikely(block_sealed(p)))
        return false;
    block_seal(p);
    bin_push(bin, top, p);
    return true;
}

/* Pushes a block of whole slices, which was in use according to the map. */
FAST bool cache_push_whole(struct cache *cache, unsigned cls, void *p)
{
    struct bin *bin = &cache->bins[BIN_FIRST + cls];
    void **top = load_own(&bin->top);
    if (unlikely(top >= load_own(&bin->limit)))
        return false;
    bin_push(bin, top, p);
    return true;
}

/* Pushes any block of the class after the slow path has checked and sealed it. */
static inline bool cache_push_any(struct cache *cache, unsigned cls, void *p)
{
    struct bin *bin = &cache->bins[BIN_FIRST + cls];
    void **top = load_own(&bin->top);
    const struct cold_bin *cold = &cache->cold[cls];
    if (load_own(&bin->topmost) == p || (size_t)(top - cold->base) >= cold->capacity ||
        cold->direct_frees > 0)
        return false;
    bin_push(bin, top, p);
    return true;
}

/* Bytes of the block at p, where that can be told from p alone: one below 64 KiB in the window,
 * which is not the one that was freed last. Else 0. */
FAST size_t cache_block_size(const struct cache *cache, const void *p)
{
    size_t offset;
    if (unlikely(!map_bin_offset(p, &offset)))
        return 0;
    const struct bin *bin = (const struct bin *)((const char *)cache + offset);
    if (unlikely(load_own(&bin->topmost) == p) || unlikely(!BIN_BLOCK_BEGINS(bin, p)))
        return 0;
    return class_of_offset(offset)->size;
}

/* For the slow path: cache_block_size while giving is closed. */
static inline size_t cache_block_size_untold(const struct cache *cache, const void *p)
{
    size_t offset = 0; /* as gcc 12 does not see that it is written */
    if (unlikely(!map_bin_offset(p, &offset)))
        return 0;
    const struct bin *bin = (const struct bin *)((const char *)cache + offset);
    if (unlikely(load_own(&bin->topmost) == p) ||
        unlikely(!block_begins(p, inverse_of_offset(offset))))
        return 0;
    return class_of_offset(offset)->size;
}

FAST struct cache *cache_current(void) { return load_own(&cache_mine); }

/* A block of n bytes from the calling thread's stacks; false where the slow path is to serve. */
FAST bool malloc_pop(size_t n, void **p)
{
    if (likely(n <= CLASS_SMALL))
        return likely(cache_pop(cache_current(), class_small_bin_offset(n), p));
    return likely(n <= CLASS_MOST) &&
           likely(cache_pop(cache_current(), class_above_bin_offset(n), p));
}

/* The same at a multiple of `align`. False for n = 0, too. */
FAST bool aligned_pop(size_t align, size_t n, void **p)
{
    size_t least = round_up(n, align);
    return likely((n | align) <= CLASS_MOST) && likely(least - 1 < CLASS_MOST) &&
           likely(cache_pop(cache_current(), class_bin_offset(least), p));
}

/* Whether its thread rests (refill.c): its stacks stay empty. */
FAST bool cache_rests(const struct cache *cache) { return (cache->closings & CLOSED_RESTS) != 0; }

/* The lock of threads without a cache, and of those that make or end one. */
extern struct lock cacheless_lock HIDDEN;

/* The lock that the calling thread holds, with this cache or null, while it takes any of a lower
 * layer: who has all of these locks, as a fork does, knows that nobody is in the middle of
 * anything. It is taken with lock_enter; where that fails the caller does without the heap. */
FAST struct lock *cache_lock_of(struct cache *cache)
{
    return likely(cache != NULL) ? cache->lock : &cacheless_lock;
}

/* What those that take a block return where they may not enter: no block's address. */
FAST void *not_entered(void) { return window_mark(); }

/* ---- a stack as the slow path sees it ----
 *
 * With the cache's lock. Its blocks lie in the slots above the lowest, up to the top. The lowest
 * holds window_mark(). */

/* Whether the thread has taken the slow path for this class. */
static inline bool stack_begun(const struct cold_bin *cold) { return cold->base != NULL; }

/* A thread that was stopped while it found its stack empty leaves the top below the base. */
static inline size_t stack_used(const struct bin *bin, const struct cold_bin *cold)
{
    if (!stack_begun(cold))
        return 0;
    void **top = load_relaxed(&bin->top);
    return top > cold->base ? (size_t)(top - cold->base) : 0;
}

static inline void stack_set_top(struct bin *bin, void **top)
{
    store_relaxed(&bin->top, top);
    store_relaxed(&bin->topmost, *top);
}

/* Free may push up to the capacity, but for the first blocks. */
static inline void stack_set_limit(struct cache *cache, unsigned stack)
{
    const struct cold_bin *cold = &cache->cold[stack];
    store_relaxed(&cache->bins[BIN_FIRST + stack].limit,
                  unlikely(cold->direct_frees > 0) ? NULL : cold->base + cold->capacity);
}

/* ---- all caches ----
 *
 * The registry: all caches that were ever made, and their owners. Caches are never freed, so any
 * thread may look at one at any time.
 *
 * The child of a fork also has the caches of its parent's other threads, with their blocks. They
 * are orphans. They are recognized by the generation of the process in which they got their owner,
 * so a child that calls exec or _exit need not touch them. Thread safe. */

enum ownership { CACHE_UNUSED, CACHE_LIVING, CACHE_ORPHAN };

/* Of a cache; another thread's may change at any moment. */
enum ownership registry_ownership(const struct cache *cache);

/* An unused cache, from now on the calling thread's; null when there is none. */
struct cache *registry_take(void);

/* Enters a new one, the calling thread's, and gives it its lock; false without memory. */
bool registry_enter(struct cache *cache);

/* Changes what the owner finds as its cache, under the cache's lock. False where it isn't `from` or
 * is not there: a thread that ended without libc's help never said so, and what its thread-local
 * memory was may be another's or nobody's. */
bool registry_exchange(struct cache *cache, struct cache *from, struct cache *to);

/* The cache is empty, and nobody's any more. */
void registry_leave(struct cache *cache);

/* Whether there may be orphans; and one of them, from now on the calling thread's to empty. */
extern bool registry_has_orphans HIDDEN; /* atomic */
struct cache *registry_adopt(void);

/* Caches of living threads. */
size_t caches_living(void);
size_t *caches_count(void); /* where it is kept, for the accounting */

/* All caches, from the newest on by `every`. */
struct cache *caches_every(void);

/* What a fork takes of this layer: the lock of threads without a cache, the
 * registry's, and every cache's, so that nobody is in the middle of anything in a stack, a transfer
 * cache or a shard. Afterwards the child has the calling thread's cache, `mine`, and orphans whose
 * blocks it takes when it needs some. */
void caches_fork_lock(void);
void caches_fork_unlock_parent(void);
void caches_fork_unlock_child(struct cache *mine);

/* ---- closing the fast paths ----
 *
 * Closes the fast paths and opens them again, by the reasons of base/policy.h. It costs nothing
 * while they are open:
 *
 *   taking  the table of classes (heap/classes.h) names no bin, or the one of blocks taken ahead
 *   giving  the inverses in a cache's bins are 0: then no block begins anywhere
 *   both    a thread in a tight loop may be in the middle of one of these; where that matters its
 *           cache is taken from it
 *
 * Every change computes the state anew from all reasons. Reasons of all caches are set before any
 * cache is closed, and a cache is closed and opened under its lock, so none is lost between
 * threads. Another process takes no lock: it writes its reason first, then the inverses, and who
 * opens looks at the reasons once more after it. tests/models/closing.pml. */

/* For all caches, those to come included. With the lock of threads without a cache, where the
 * reason closes taking or giving; false where malloc can't be closed. When it returns every thread
 * is in the middle of one call through its cache at most on x86; elsewhere it is soon. */
bool heap_close(enum closing reason, bool on);

/* For one, and one of its reasons. The caller holds its lock. */
void cache_close(struct cache *cache, enum closing reason, bool on);

/* Has its stacks as the reasons say: all, or those that are begun. */
void cache_settle(struct cache *cache, bool all);

/* What another process closed opens. */
void heap_open_ordered(void);

/* Where it says that it did: not 0. */
extern uint32_t closed_from_outside HIDDEN;

#endif

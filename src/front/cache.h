/* A thread's cache: per class a stack of pointers to free blocks. malloc pops, free pushes, whoever
 * allocated the block; neither touches the block.
 *
 *   malloc -> class_place -> cache_pop      false: the door -> cache_refill
 *   free   -> map_place   -> cache_push     false: the door -> cache_give -> cache_flush
 *
 * A stack's lowest place holds the window's base, where no block begins, so an empty stack is found
 * by the load that pops. The topmost block is kept beside the top too: malloc then needs no load
 * that waits for the store of the last free (16 cycles a pair of random sizes against 20). A stack
 * is full when its top has reached its limit. A thread without a cache has one of two constant
 * ones, whose stacks are empty and full at once, so it meets the door at its first call.
 *
 * The owner alone touches top and slots, without atomics. Inside the door it holds the cache's
 * lock, so that whoever has the lock (a fork) sees stacks that are whole, but
 * for one push or pop. */
#ifndef HAKMEM_FRONT_CACHE_H
#define HAKMEM_FRONT_CACHE_H

#include "back/map.h"
#include "base/asm.h"
#include "base/defs.h"
#include "base/list.h"
#include "base/misuse.h"
#include "heap/classes.h"
#include "os/os.h"

#define BINS (BIN_FIRST + CLASSES)

struct bin {
    void *topmost; /* what lies at `top` */
    void **top;    /* the topmost block's place, or the lowest place, below all */
    void **limit;  /* the topmost place; 0 where every push meets the door */
    void **base;   /* the lowest place, which holds the window's base */
};

/* What the door knows of a stack. */
struct depot {
    uint32_t room;     /* blocks the array can hold */
    uint32_t capacity; /* blocks it may hold now, at most room */
    uint32_t streak;   /* refills in a row, or flushes, by `flushing` */
    bool flushing;
};

struct cache {
    struct bin bins[BINS]; /* first: a place is a distance from the start */
    struct depot depots[CLASSES];
    struct lock lock;
    unsigned shard;
    size_t capacity_bytes; /* blocks that all stacks may hold; 0 only in the constant caches */
    size_t refills;        /* counts, for statistics */
    size_t flushes;
    struct list node;   /* all caches; lock: caches */
    struct cache *next; /* orphans and unused caches; lock: caches */
    void *first[CLASS_FIRST_WORDS];
};

static_assert(offsetof(struct cache, bins) == 0 && sizeof(struct bin) == BIN_BYTES,
              "a bin's number times its bytes is its place");
static_assert(sizeof(struct cache) <= 10 * KiB, "a thread's cache is two pages and a half");

/* No cache yet: the thread's first call. No cache any more: calls of destructors that run late. */
extern const struct cache cache_none;
extern const struct cache cache_gone;

extern __thread struct cache *cache_mine HIDDEN;

FAST struct bin *cache_bin(struct cache *cache, size_t place)
{
    struct bin *bin = (struct bin *)((char *)cache + place);
    FORGET(bin);
    return bin;
}

/* A block of the class to *p; false when the stack is empty. */
FAST bool cache_pop(struct cache *cache, size_t place, void **p)
{
    struct bin *bin = cache_bin(cache, place);
    void *topmost = bin->topmost;
    FORGET_RESULT(topmost);
    *p = topmost;
    if (unlikely(topmost == window_base))
        return false;
    bin->topmost = bin->top[-1];
    STEP_DOWN(bin->top);
    return true;
}

/* False when the stack is full, when p is its topmost block and so is being freed twice, and when p
 * is no block of the window. */
FAST bool cache_push(struct cache *cache, size_t place, void *p)
{
    struct bin *bin = cache_bin(cache, place);
    void **top = bin->top;
    if (unlikely(top >= bin->limit) || unlikely(!window_pair(bin->topmost, p)))
        return false;
    top[1] = p;
    bin->topmost = p;
    SLOT_BEFORE_TOP();
    STEP_UP(bin->top);
    return true;
}

/* The same for any block of the class, where the door has looked at p already. A stack with a block
 * outside the window is closed to the fast push, which compares with what is on top. */
static inline bool cache_push_any(struct cache *cache, unsigned cls, void *p)
{
    struct bin *bin = &cache->bins[BIN_FIRST + cls];
    if (bin->topmost == p || (size_t)(bin->top - bin->base) >= cache->depots[cls].capacity)
        return false;
    if (unlikely(load_relaxed(&window_left)))
        bin->limit = NULL;
    bin->top[1] = p;
    bin->topmost = p;
    SLOT_BEFORE_TOP();
    bin->top++;
    return true;
}

/* A cache for the calling thread; null without memory. */
struct cache *cache_new(void);

/* Flushes all and gives the cache up; no thread uses it any more. */
struct finding cache_delete(struct cache *cache);

/* Fills the empty stack of a class and returns one block more; null without memory. */
void *cache_refill(struct cache *cache, unsigned cls);

/* Pushes p after the older part of a full stack is flushed. */
struct finding cache_give(struct cache *cache, unsigned cls, void *p);

/* Caches of living threads. */
size_t caches_living(void);

/* Around fork: afterwards the child has the calling thread's cache and orphans, whose blocks it
 * takes when it needs some. */
void caches_fork_lock(void);
void caches_fork_unlock_parent(void);
void caches_fork_unlock_child(const struct cache *mine);

#endif

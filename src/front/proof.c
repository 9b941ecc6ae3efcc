#include "front/proof.h"

#include "front/ahead.h"
#include "front/cache.h"
#include "front/registry.h"
#include "heap/shards.h"
#include "heap/transfer.h"
#include "os/lock.h"
#include "os/os.h"

/* Whether p lies in the stack. Its owner may push and pop meanwhile, but not p: that is in
 * a stack or with the caller. */
static bool stack_holds(const struct cache *cache, unsigned stack, const void *p)
{
    ASSERT(lock_held(cache->lock));
    const struct bin *bin = &cache->bins[BIN_FIRST + stack];
    const struct cold_bin *cold = &cache->cold[stack];
    bool found = false;
    size_t used = stack_used(bin, cold);
    for (void **slot = used > 0 ? cold->base : NULL; used > 0 && !found; used--)
        found = load_relaxed(++slot) == p;
    return found || load_relaxed(&bin->topmost) == p;
}

/* A slab may have become thin, or be so no more, since the block was freed. */
static bool cache_holds(struct cache *cache, unsigned cls, const void *p)
{
    lock_take(cache->lock);
    bool found = stack_holds(cache, cls, p) ||
                 (cls < CLASSES_THIN && stack_holds(cache, CLASSES + cls, p)) ||
                 ahead_holds(cache, cls, p);
    lock_release(cache->lock);
    return found;
}

/* Where a free block was seen. Under a lock, and in the own stacks, what is seen is so. What
 * another thread popped before it gave the block to the caller may still be seen in that thread's
 * stack where a processor reorders stores; not after a pause. */
enum seen { NOWHERE, IN_ANOTHERS_STACK, FREE };

#define PAUSE_MILLISECONDS 1

/* The own stacks come first: a block may come from there to its slab, never back. */
static enum seen where_free(unsigned cls, const void *p)
{
    if (!lock_enter(&cacheless_lock))
        return NOWHERE; /* a fork holds everything: it can't be proved now */
    struct cache *own = load_relaxed(&cache_mine);
    enum seen seen = NOWHERE;
    if ((own != NULL && own->lock != NULL && cache_holds(own, cls, p)) ||
        shards_check(p) == MISUSE_FREE || transfer_holds(cls, p))
        seen = FREE;
    for (struct cache *cache = caches_every(); cache != NULL && seen == NOWHERE;
         cache = cache->every)
        if (cache != own && cache_holds(cache, cls, p))
            seen = IN_ANOTHERS_STACK;
    lock_release(&cacheless_lock);
    return seen;
}

COLD bool block_is_free(unsigned cls, const void *p)
{
    ASSERT(lock_none_held());
    ASSERT(cls < CLASSES);
    enum seen seen = where_free(cls, p);
    if (seen == IN_ANOTHERS_STACK) {
        os_let_pass(PAUSE_MILLISECONDS);
        seen = where_free(cls, p);
    }
    return seen != NOWHERE;
}

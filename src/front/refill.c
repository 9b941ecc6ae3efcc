#include "front/refill.h"

#include "back/use.h"
#include "base/atomic.h"
#include "base/memory.h"
#include "base/policy.h"
#include "front/cache.h"
#include "front/owners.h"
#include "front/stacks.h"
#include "heap/shards.h"
#include "heap/transfer.h"
#include "learn/returns.h"
#include "os/lock.h"
#include "os/os.h"

/* Notes that the stack is full or empty now. Returns whether it was only filled, or only emptied,
 * for so long that it will be again; alone, a thread has nobody to pass blocks to. */
static bool goes_one_way(struct cold_bin *cold, bool full, bool shared)
{
    cold->streak = capacity_streak(cold->streak, cold->full != full) & 0x7f;
    cold->full = full;
    return shared && cold->streak == STREAK_LONG;
}

/* Whether the stack may learn from being empty: not if blocks of thin slabs went to the second one
 * since the last refill, as those frees would have filled it. */
static bool learns(struct cache *cache, unsigned cls)
{
    if (cls >= CLASSES_THIN || likely(!shard_compacts(cache->shard, cls)))
        return true;
    struct cold_bin *second = &cache->cold[CLASSES + cls];
    size_t used = stack_used(&cache->bins[BIN_FIRST + CLASSES + cls], second);
    bool same = used == second->seen;
    second->seen = used & ROOM_MOST;
    return same;
}

/* When a class compacts no more, nothing would fill the second stack and so empty it. */
static struct finding second_put_unless_compacts(struct cache *cache, unsigned cls)
{
    if (cls >= CLASSES_THIN || likely(!stack_begun(&cache->cold[CLASSES + cls])) ||
        shard_compacts(cache->shard, cls))
        return (struct finding){MISUSE_NONE, NULL};
    return stacks_put(cache, CLASSES + cls, CLASSES + cls + 1);
}

/* A batch for an empty stack, of which the last is returned. */
static void *stack_fill(struct cache *cache, unsigned cls)
{
    ASSERT(lock_held(cache->lock));
    struct bin *bin = &cache->bins[BIN_FIRST + cls];
    struct cold_bin *cold = &cache->cold[cls];
    store_relaxed(&cache->refills, cache->refills + 1);
    bool shared = caches_living() > 1;
    bool first = cold->streak == 0;
    struct capacity_seen seen = {.event = STACK_EMPTY, .shared = shared};
    seen.passes = goes_one_way(cold, false, shared);
    if (likely(learns(cache, cls)) && !first)
        stack_adapt(cache, cls, seen);

    size_t n = capacity_batch(cold->capacity, seen.passes && !first);
    n += n == 0;
    ASSERT(n <= cold->room && stack_used(bin, cold) == 0);
    void **end = cold->base + 1 + n;
    size_t got = transfer_take(cls, end, n);
    if (got == 0) {
        bool before = shard_compacts(cache->shard, cls);
        got = shard_take(cache->shard, cls, end, n);
        journal_compaction(cache->shard, cls, before);
    }
    if (got == 0)
        return NULL;
    size_t bytes = got * size_classes[cls].size;
    cache_took(cache, bytes);
    cache->outflow -= smaller(bytes, cache->outflow);
    stack_set_limit(cache, cls);
    if (got < n)
        words_move(cold->base + 1, end - got, got);
    void *p = cold->base[got];
    stack_set_top(bin, cold->base + got - 1);
    return p;
}

SLOW void *cache_refill(struct cache *cache, unsigned cls, struct finding *found)
{
    ASSERT(cls < CLASSES);
    ASSERT(lock_held(cache->lock));
    struct bin *bin = &cache->bins[BIN_FIRST + cls];
    stack_settle(cache, cls);
    void *p = bin->topmost;
    if (unlikely(p != window_mark())) /* it was closed */
        stack_set_top(bin, bin->top - 1);
    else
        p = stack_fill(cache, cls);
    finding_keep(found, second_put_unless_compacts(cache, cls));
    return p;
}

/* Frees the older part of a full stack. */
static struct finding stack_flush(struct cache *cache, unsigned cls)
{
    ASSERT(lock_held(cache->lock));
    struct cold_bin *cold = &cache->cold[cls];
    struct bin *bin = &cache->bins[BIN_FIRST + cls];
    store_relaxed(&cache->flushes, cache->flushes + 1);
    size_t used = stack_used(bin, cold);
    bool drains = capacity_drains(cache->outflow, cache->capacity_bytes);
    /* Alone, a thread finds its own blocks sooner, and in order, by their bits. */
    bool shared = caches_living() > 1;
    bool foreign = shared && used > 0 && shard_of(cold->base[1]) != cache->shard;
    struct capacity_seen seen = {.event = STACK_FULL, .shared = shared, .foreign = foreign};
    bool one_way = goes_one_way(cold, true, shared);
    seen.passes = one_way || foreign;
    seen.drains = drains;
    bool ebbs = cache->ebb > 0;
    if (likely(!ebbs))
        stack_adapt(cache, cls, seen);
    size_t keep = cold->capacity - capacity_batch(cold->capacity, one_way || ebbs);
    if (used <= keep)
        return (struct finding){MISUSE_NONE, NULL};
    cache->outflow += (used - keep) * size_classes[cls].size;
    return stack_put_oldest(cache, cls, used - keep, seen.passes);
}

/* Frees a full stack of blocks of thin slabs: all of it, as malloc takes none. */
static struct finding thin_flush(struct cache *cache, unsigned stack)
{
    ASSERT(lock_held(cache->lock));
    store_relaxed(&cache->flushes, cache->flushes + 1);
    struct finding found = stacks_put(cache, stack, stack + 1);
    if (cache->ebb == 0)
        stack_grow_thin(cache, stack);
    return found;
}

/* Then it does not ebb again: the next time that it stops may be as short. */
static bool ebbed_lately(const struct cache *cache)
{
    return os_milliseconds() < cache->stays_until;
}

/* Bytes that all stacks hold. */
static size_t stacks_bytes(const struct cache *cache)
{
    size_t bytes = 0;
    for (unsigned stack = begun_from(cache, 0); stack < STACKS;
         stack = begun_from(cache, stack + 1))
        bytes += stack_used(&cache->bins[BIN_FIRST + stack], &cache->cold[stack]) *
                 size_classes[stack_class(stack)].size;
    return bytes;
}

/* A thread that has given back nearly all that it took, by frees alone, has nothing to do with what
 * its stacks hold, and nobody else can take from them while it sleeps: a block kept would keep its
 * page from going back. One that frees what others allocated ebbs while little is in use. What
 * costs least to look at comes first. */
static COLD bool thread_ebbs(const struct cache *cache)
{
    ASSERT(lock_held(cache->lock));
    ptrdiff_t taken = (ptrdiff_t)cache->taken;
    ptrdiff_t room = (ptrdiff_t)(cache->capacity_bytes + cache->large_bytes);
    if (!use_returns())
        return false;
    if (taken <= 0)
        return use_low() && !ebbed_lately(cache);
    return returns_ebbs(taken - room, cache->most_taken) && !ebbed_lately(cache) &&
           returns_ebbs(taken - (ptrdiff_t)stacks_bytes(cache), cache->most_taken);
}

/* What its stacks could hold, as small as new ones; a class may have two. Never 0. */
static size_t first_bytes(const struct cache *cache)
{
    size_t bytes = 1;
    for (unsigned cls = begun_from(cache, 0); cls < CLASS_LARGE; cls = begun_from(cache, cls + 1))
        bytes += 2 * size_classes[cls].first * size_classes[cls].size;
    return bytes;
}

/* Its stacks are emptied, and hold as little as new ones until it allocates. */
static COLD struct finding cache_ebbs(struct cache *cache)
{
    ASSERT(lock_held(cache->lock));
    cache->ebb = first_bytes(cache);
    cache->stays_until = os_milliseconds() + RETURNS_ROUND_MS;
    store_relaxed(&purge_due, clock_now()); /* there may be much to give back */
    return cache_drain(cache);
}

/* It rests: its frees go to the slabs. */
static COLD struct finding cache_rest(struct cache *cache)
{
    ASSERT(lock_held(cache->lock));
    struct finding found = cache_drain(cache);
    arrays_purge(cache);
    cache_close(cache, CLOSED_RESTS, true);
    store_relaxed(&purge_due, clock_now());
    return found;
}

/* Whether all that is left would find room in the stacks, of which this one may be full, so that
 * the thread may never come again to empty them. How much is left of what others took is not known,
 * so a thread that frees that rests at once. */
static bool ebb_ends(const struct cache *cache, unsigned stack)
{
    size_t goes = stack_used(&cache->bins[BIN_FIRST + stack], &cache->cold[stack]) *
                  size_classes[stack_class(stack)].size;
    return (ptrdiff_t)cache->taken <= (ptrdiff_t)(cache->ebb + goes);
}

static COLD struct finding cache_settle_ebb(struct cache *cache, unsigned stack)
{
    ASSERT(lock_held(cache->lock));
    struct finding found = {MISUSE_NONE, NULL};
    if (cache->ebb == 0 && thread_ebbs(cache))
        found = cache_ebbs(cache);
    if (cache->ebb > 0 && ebb_ends(cache, stack))
        finding_keep(&found, cache_rest(cache));
    return found;
}

/* Past the stack; `found` is what came to light before. */
static struct finding give_one(struct cache *cache, unsigned stack, void *p, struct finding found)
{
    ASSERT(lock_held(cache->lock));
    struct cold_bin *cold = &cache->cold[stack];
    cold->direct_frees -= cold->direct_frees > 0;
    struct finding one = shards_put(&p, 1);
    cache_gave(cache, size_classes[stack].size);
    finding_keep(&one, found); /* of the call's own block before others */
    return one;
}

/* Frees blocks of a full stack, so that one finds room. */
static struct finding stack_make_room(struct cache *cache, unsigned stack)
{
    ASSERT(lock_held(cache->lock));
    unsigned cls = stack_class(stack);
    bool before = shard_compacts(cache->shard, cls);
    struct finding found =
        stack_is_thin(stack) ? thin_flush(cache, stack) : stack_flush(cache, cls);
    journal_compaction(cache->shard, cls, before);
    return found;
}

SLOW struct finding cache_give(struct cache *cache, unsigned stack, void *p)
{
    ASSERT(stack < STACKS);
    struct bin *bin = &cache->bins[BIN_FIRST + stack];
    struct cold_bin *cold = &cache->cold[stack];
    ASSERT(lock_held(cache->lock));
    if (load_relaxed(&bin->topmost) == p)
        return (struct finding){MISUSE_FREE, p};
    struct finding found = {MISUSE_NONE, NULL};
    stack_settle(cache, stack);
    if (unlikely(cache->ebb > 0) && (ptrdiff_t)cache->taken <= 0 && !use_low())
        cache_flows(cache);
    bool full = stack_used(bin, cold) >= cold->capacity;
    if ((full || unlikely(cache->ebb > 0)) && !cache_rests(cache)) {
        found = cache_settle_ebb(cache, stack);
        stack_settle(cache, stack);
    }
    bool keeps = cold->direct_frees == 0 && !cache_rests(cache) && cold->capacity > 0;
    if (keeps && stack_used(bin, cold) >= cold->capacity) {
        finding_keep(&found, stack_make_room(cache, stack));
        keeps = cold->capacity > 0;
    }
    if (!keeps)
        found = give_one(cache, stack, p, found);
    stack_set_limit(cache, stack);
    if (keeps && unlikely(!cache_push_any(cache, stack, p)) && found.what == MISUSE_NONE)
        found = (struct finding){MISUSE_FREE, p};
    return found;
}

/* ---- past the stacks ---- */

void *past_take(struct cache *cache, unsigned cls)
{
    ASSERT(lock_held(cache->lock));
    void *p = NULL;
    unsigned shard = cache->hinted > 0 ? cache->hinted - 1 : cache->shard;
    cache->hinted = 0;
    bool before = shard_compacts(shard, cls);
    if (shard_take(shard, cls, &p + 1, 1) == 1)
        cache_took(cache, size_classes[cls].size);
    journal_compaction(shard, cls, before);
    return p;
}

/* On top of the stack, or of the class's other one. */
static bool lies_on_top(const struct cache *cache, unsigned stack, const void *p)
{
    unsigned cls = stack_class(stack);
    return load_relaxed(&cache->bins[BIN_FIRST + cls].topmost) == p ||
           (cls < CLASSES_THIN &&
            load_relaxed(&cache->bins[BIN_FIRST + CLASSES + cls].topmost) == p);
}

struct finding past_give(struct cache *cache, unsigned stack, void *p)
{
    ASSERT(lock_held(cache->lock));
    if (unlikely(lies_on_top(cache, stack, p)))
        return (struct finding){MISUSE_FREE, p};
    unsigned cls = stack_class(stack);
    bool before = shard_compacts(cache->shard, cls);
    struct finding found = shards_put(&p, 1);
    cache_gave(cache, size_classes[cls].size);
    journal_compaction(cache->shard, cls, before);
    return found;
}

/* A thread without a cache takes from the first shard alone. */
bool past_attracts(struct cache *cache, const void *p)
{
    ASSERT(lock_held(cache_lock_of(cache)));
    unsigned shard = 0;
    bool attracts = shards_attract(p, &shard) && (cache != NULL || shard == 0);
    if (cache != NULL)
        cache->hinted = attracts ? shard + 1 : 0;
    return attracts;
}

/* The thief holds the cache's lock, so the owner is not in the slow path beyond taking that lock.
 * The thief closes all stacks and takes the cache from the owner, whose next call enters the slow
 * path and waits there. After a barrier on every processor that runs a thread of this process
 * (os_barrier_everywhere) the owner can be in the middle of one call at most.
 *
 * In each stack the thief replaces the topmost block by the mark, in its slot and next to the top.
 * After another barrier it checks that the top has not moved and that the mark is still in its
 * slot. If so, the owner has not seen the block and never will: malloc lowers the top before it
 * reads the block, so if it had read either copy, the thief would see the lower top now; if it
 * reads later, it finds the mark and enters the slow path. All blocks up to there are the thief's,
 * and the slot with the mark is the stack's floor. If not, the block is put back into the slot if
 * the mark is still there. Next to the top the mark stays, and the slow path reads the slot.
 *
 * If that succeeds for all stacks the cache goes to sleep. A free that the owner was in the middle
 * of may still store its block above a floor; cache_wake finds it. */
#include "front/theft.h"

#include "base/counters.h"
#include "base/policy.h"
#include "front/arrays.h"
#include "front/closer.h"
#include "front/registry.h"
#include "front/stack.h"
#include "front/stacks.h"
#include "heap/shards.h"
#include "os/lock.h"
#include "os/os.h"

struct marked {
    void **top;  /* where the mark is; null where the owner was at work */
    void *block; /* what it replaces; null in an empty stack */
};

static bool exchange(void **word, void *old, void *new)
{
    return __atomic_compare_exchange_n(word, &old, new, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

static struct marked stack_mark_top(struct bin *bin, struct cold_bin *cold)
{
    const struct marked busy = {NULL, NULL};
    if (!stack_begun(cold))
        return busy;
    void **top = load_acquire(&bin->top);
    void **floor = stack_floor(cold);
    void *topmost = load_relaxed(&bin->topmost);
    if (top == floor && topmost == stack_mark() && !cold->topmost_unsure)
        return (struct marked){top, NULL};
    if (top <= floor || load_relaxed(top) != topmost || topmost == stack_mark())
        return busy;
    if (!exchange(top, topmost, stack_mark()))
        return busy;
    if (!exchange(&bin->topmost, topmost, stack_mark())) {
        exchange(top, stack_mark(), topmost);
        cold->topmost_unsure = true; /* the owner may have seen the mark in the slot */
        return busy;
    }
    return (struct marked){top, topmost};
}

/* Whether the owner never saw what the mark replaces. */
static bool stack_unseen(const struct bin *bin, struct marked m)
{
    return load_acquire(&bin->top) == m.top && load_relaxed(m.top) == stack_mark();
}

/* Without the barrier between the marks and the looks, or in another order of the marks, a block
 * could be the owner's and the thief's: tests/models/bed and tests/explore have the cases. */
static void stacks_mark(struct cache *cache, struct marked *marked)
{
    ASSERT(lock_held(cache->lock));
    bool sure = os_barrier_everywhere();
    for (unsigned stack = 0; stack < STACKS; stack++)
        marked[stack] = sure ? stack_mark_top(&cache->bins[BIN_FIRST + stack], &cache->cold[stack])
                             : (struct marked){NULL, NULL};
    sure = sure && os_barrier_everywhere();
    for (unsigned stack = 0; stack < STACKS; stack++) {
        struct marked *m = &marked[stack];
        if (m->top == NULL || (sure && stack_unseen(&cache->bins[BIN_FIRST + stack], *m)))
            continue;
        if (m->block != NULL) {
            exchange(m->top, stack_mark(), m->block);
            cache->cold[stack].topmost_unsure = true;
        }
        m->top = NULL;
    }
}

/* Frees what was marked; the slots above keep what the owner may add. */
static void stack_rob(struct cold_bin *cold, struct marked m, unsigned stack, struct theft *theft)
{
    void **lowest = stack_floor(cold) + 1;
    ASSERT(m.top >= lowest && m.top <= cold->base + cold->room);
    size_t below = (size_t)(m.top - lowest);
    struct finding found = shards_put(lowest, below);
    if (found.what == MISUSE_NONE)
        found = shards_put(&m.block, 1);
    else
        shards_put(&m.block, 1);
    if (theft->found.what == MISUSE_NONE)
        theft->found = found;
    cold->floor = (size_t)(m.top - cold->base) & ROOM_MOST;
    theft->bytes += (below + 1) * size_classes[stack].size;
}

static void cache_rob(struct cache *cache, struct theft *theft)
{
    ASSERT(lock_held(cache->lock) && !cache->asleep);
    struct marked marked[STACKS];
    if (!registry_exchange(cache, cache, &cache_none) &&
        !registry_exchange(cache, &cache_none, &cache_none)) /* the closer's already */
        return;
    for (unsigned i = BIN_FIRST; i < BINS; i++)
        store_relaxed(&cache->bins[i].limit, NULL);
    stacks_mark(cache, marked);
    bool sleeps = true;
    size_t before = theft->bytes;
    for (unsigned stack = 0; stack < STACKS; stack++) {
        sleeps = sleeps && (marked[stack].top != NULL || !stack_begun(&cache->cold[stack]));
        if (marked[stack].top != NULL && marked[stack].block != NULL)
            stack_rob(&cache->cold[stack], marked[stack], stack, theft);
    }
    cache->taken -= theft->bytes - before;
    if (sleeps) {
        cache->asleep = true;
        registry_sleeps();
        arrays_purge(cache);
        return;
    }
    stacks_open(cache);
    if (!__atomic_load_n(&caches_closed, __ATOMIC_SEQ_CST))
        registry_exchange(cache, &cache_none, cache);
}

static void cache_visit(struct cache *cache, bool all, struct theft *theft)
{
    ASSERT(lock_held(cache->lock));
    size_t activity = load_relaxed(&cache->refills) + load_relaxed(&cache->flushes);
    enum ownership whose = registry_ownership(cache);
    if (whose == CACHE_ORPHAN)
        return;
    if (whose == CACHE_UNUSED) {
        if (cache->seen != SIZE_MAX) /* nobody's since the last visit */
            arrays_purge(cache);
        cache->seen = SIZE_MAX;
    } else if (!all && activity != cache->seen) {
        cache->seen = activity;
        theft->busy++;
    } else if (!cache->asleep) {
        cache_rob(cache, theft);
    }
}

struct theft caches_steal(bool all)
{
    ASSERT(lock_rank_held(RANK_PURGE));
    struct theft theft = {0, 0, {MISUSE_NONE, NULL}};
    if (!policy.extra_calls || !os_barrier_everywhere())
        return theft; /* each stack keeps what its capacity allows */
    for (struct cache *cache = caches_every(); cache != NULL; cache = cache->every) {
        if (cache == load_relaxed(&cache_mine) || !lock_try(cache->lock))
            continue;
        cache_visit(cache, all, &theft);
        lock_release(cache->lock);
    }
    clock_advance(theft.bytes);
    return theft;
}

#include "front/adapt.h"

#include <string.h>

#include "back/use.h"
#include "base/counters.h"
#include "base/policy.h"
#include "front/arrays.h"
#include "front/journal.h"
#include "front/registry.h"
#include "front/stack.h"
#include "learn/share.h"
#include "os/lock.h"
#include "os/os.h"

bool caches_crowded(void) { return policy.learn == LEARN && share_is_crowd(caches_awake()); }

struct capacity_share cache_share(const struct cache *cache)
{
    size_t awake = caches_awake();
    if (awake <= 1)
        return share_alone(policy.thread_bytes);
    if (caches_crowded())
        return share_in_crowd(cache->refills - cache->began, policy.thread_bytes);
    return share_at_work(awake, load_relaxed(&use.slices), policy.thread_bytes);
}

size_t stack_first(unsigned cls)
{
    const struct size_class *c = &size_classes[cls];
    if (!caches_crowded() || cls >= CLASS_LARGE)
        return c->first;
    return share_first(c->size, c->first);
}

static void stack_set_capacity(struct cache *cache, unsigned cls, size_t capacity)
{
    ASSERT(lock_held(cache->lock));
    ASSERT(capacity <= cache->cold[cls].room);
    struct cold_bin *cold = &cache->cold[cls];
    size_t size = size_classes[cls].size;
    if (cls < CLASS_LARGE) {
        cache->capacity_bytes += (capacity - cold->capacity) * size;
        cache->capacity_weight += (capacity - cold->capacity) * capacity_weight(size);
    }
    cold->capacity = (uint16_t)capacity;
    stack_open(cache, cls);
}

/* On a larger array where the old one is too small; where there is none nothing changes. Arrays are
 * 10 * 2^n words: arrays at equal distances modulo 4 KiB would make the stores of one class block
 * the loads of another (25 cycles a pair of random sizes, 32 with powers of two). */
static void stack_resize(struct cache *cache, unsigned cls, size_t capacity)
{
    ASSERT(lock_held(cache->lock));
    ASSERT(capacity <= ROOM_MOST);
    struct cold_bin *cold = &cache->cold[cls];
    struct bin *bin = &cache->bins[BIN_FIRST + cls];
    size_t first = size_classes[cls].first + 1u;
    if (capacity > cold->room) {
        void **array = array_take(cache, capacity + 1);
        if (array == NULL)
            return;
        size_t used = stack_used(bin, cold);
        memcpy(array, cold->base, (used + 1) * sizeof *array);
        if (cold->room >= first)
            array_give(cache, cold->base, cold->room + 1u);
        cold->base = array;
        cold->room = capacity & ROOM_MOST;
        store_relaxed(&bin->top, array + used);
    }
    stack_set_capacity(cache, cls, capacity);
}

void stack_cut(struct cache *cache, unsigned cls)
{
    ASSERT(lock_held(cache->lock));
    size_t first = stack_first(cls);
    if (policy.learn == LEARN && first < cache->cold[cls].capacity)
        stack_set_capacity(cache, cls, first);
    cache->cold[cls].learned = cache->cold[cls].capacity;
}

void stack_start_capacity(struct cache *cache, unsigned cls)
{
    ASSERT(lock_held(cache->lock));
    const struct size_class *c = &size_classes[cls];
    size_t first = stack_first(cls);
    stack_set_capacity(cache, cls, first);
    cache->cold[cls].learned = (uint16_t)first;
    if (policy.learn != LEARN && cls < CLASS_LARGE)
        stack_resize(cache, cls, capacity_fixed(c->size, c->first, &policy));
}

static COLD void journal_stack(unsigned cls, size_t from, struct capacity to)
{
    const struct journal_entry entry = {.subject = JOURNAL_STACK,
                                        .why = to.why,
                                        .thread = os_thread_id(),
                                        .size = size_classes[cls].size,
                                        .from = from,
                                        .to = to.blocks,
                                        .clock = clock_now()};
    journal_add(&entry);
}

void stack_adapt(struct cache *cache, unsigned cls, struct capacity_seen seen)
{
    ASSERT(lock_held(cache->lock));
    ASSERT(stack_begun(&cache->cold[cls]));
    struct cold_bin *cold = &cache->cold[cls];
    seen.burst = capacity_turn(&cold->history, seen.event, cold->capacity);
    seen.history = cold->history;
    if (policy.learn == LEARN_FROZEN)
        return;
    seen.size = size_classes[cls].size;
    seen.first = stack_first(cls);
    seen.capacity = cold->learned;
    seen.held = cache->capacity_bytes;
    seen.weight = cache->capacity_weight;
    seen.share = cache_share(cache);
    struct capacity next = capacity_step(&seen, &policy);
    if (next.why == CAPACITY_FITS)
        return;
    if (journal_open())
        journal_stack(cls, cold->learned, next);
    cold->learned = next.blocks & ROOM_MOST;
    if (policy.learn == LEARN && next.blocks != cold->capacity) {
        stack_resize(cache, cls, next.blocks);
        cold->learned = cold->capacity;
    }
}

#include "front/adapt.h"

#include "back/use.h"
#include "base/counters.h"
#include "base/memory.h"
#include "base/policy.h"
#include "front/arrays.h"
#include "front/journal.h"
#include "front/registry.h"
#include "front/stack.h"
#include "learn/share.h"
#include "os/lock.h"
#include "os/os.h"

struct capacity_share cache_share(const struct cache *cache)
{
    size_t threads = caches_living();
    size_t keep = load_relaxed(&limits.keep);
    size_t bytes = smaller(load_relaxed(&policy.thread_bytes), keep);
    if (threads <= 1)
        return share_alone(bytes);
    size_t refills = cache->refills - cache->began;
    return share_at_work(threads, refills, load_relaxed(&use.slices), keep, bytes);
}

/* Blocks that a new stack of the class may hold. */
static size_t stack_first(unsigned stack, struct capacity_share share)
{
    const struct size_class *c = &size_classes[stack];
    if (policy.learn != LEARN || stack_is_large(stack))
        return c->first;
    return share_first(c->size, c->first, share.weight);
}

static void stack_set_capacity(struct cache *cache, unsigned stack, size_t capacity)
{
    ASSERT(lock_held(cache->lock));
    ASSERT(capacity <= cache->cold[stack].room);
    struct cold_bin *cold = &cache->cold[stack];
    size_t size = size_classes[stack].size;
    if (!stack_is_large(stack)) {
        cache->capacity_bytes += (capacity - cold->capacity) * size;
        cache->capacity_weight += (capacity - cold->capacity) * capacity_weight(size);
    }
    cold->capacity = (uint16_t)capacity;
    stack_set_limit(cache, stack);
}

/* On a larger array where the old one is too small; where there is none nothing changes. Arrays are
 * 10 * 2^n words: arrays at equal distances modulo 4 KiB would make the stores of one
 * class block the loads of another (25 cycles a pair of random sizes, 32 with powers of two). */
static void stack_resize(struct cache *cache, unsigned stack, size_t capacity)
{
    ASSERT(lock_held(cache->lock));
    ASSERT(capacity <= ROOM_MOST);
    struct cold_bin *cold = &cache->cold[stack];
    struct bin *bin = &cache->bins[BIN_FIRST + stack];
    size_t first = size_classes[stack].first + 1u;
    if (capacity > cold->room) {
        void **array = array_take(cache, capacity + 1);
        if (array == NULL)
            return;
        size_t used = stack_used(bin, cold);
        words_move(array, cold->base, used + 1);
        if (cold->room >= first)
            array_give(cache, cold->base, cold->room + 1u);
        cold->base = array;
        cold->room = capacity & ROOM_MOST;
        store_relaxed(&bin->top, array + used);
    }
    stack_set_capacity(cache, stack, capacity);
}

void stack_grow_thin(struct cache *cache, unsigned stack)
{
    ASSERT(lock_held(cache->lock) && stack_is_thin(stack));
    const size_t most = LAW_FREES_A_LOOK - 1;
    size_t size = size_classes[stack].size;
    size_t capacity = cache->cold[stack].capacity;
    if (policy.learn != LEARN || capacity >= most || most > policy.stack_blocks ||
        most * size > policy.stack_bytes)
        return;
    if (cache->capacity_bytes + (most - capacity) * size <= cache_share(cache).bytes)
        stack_resize(cache, stack, most);
}

void stack_start_capacity(struct cache *cache, unsigned stack)
{
    ASSERT(lock_held(cache->lock));
    const struct size_class *c = &size_classes[stack];
    size_t first = stack_first(stack, cache_share(cache));
    stack_set_capacity(cache, stack, first);
    cache->cold[stack].learned = (uint16_t)first;
    if (policy.learn != LEARN && stack < CLASS_LARGE) /* not of thin slabs */
        stack_resize(cache, stack, capacity_fixed(c->size, c->first, &policy));
}

static COLD void journal_stack(unsigned stack, size_t from, struct capacity to)
{
    const struct journal_entry entry = {.subject = JOURNAL_STACK,
                                        .why = to.why,
                                        .thread = os_thread_id(),
                                        .size = size_classes[stack].size,
                                        .from = from,
                                        .to = to.blocks,
                                        .clock = clock_now()};
    journal_add(&entry);
}

void stack_adapt(struct cache *cache, unsigned stack, struct capacity_seen seen)
{
    ASSERT(lock_held(cache->lock));
    ASSERT(stack_begun(&cache->cold[stack]));
    struct cold_bin *cold = &cache->cold[stack];
    seen.burst = capacity_turn(&cold->history, seen.event, cold->capacity);
    seen.history = cold->history;
    if (policy.learn == LEARN_FROZEN)
        return;
    seen.size = size_classes[stack].size;
    seen.capacity = cold->learned;
    seen.held = cache->capacity_bytes;
    seen.weight = cache->capacity_weight;
    seen.share = cache_share(cache);
    seen.first = stack_first(stack, seen.share);
    struct capacity next = capacity_step(&seen, &policy);
    if (next.why == CAPACITY_FITS)
        return;
    if (journal_open())
        journal_stack(stack, cold->learned, next);
    cold->learned = next.blocks & ROOM_MOST;
    if (policy.learn == LEARN && next.blocks != cold->capacity) {
        stack_resize(cache, stack, next.blocks);
        cold->learned = cold->capacity;
    }
}

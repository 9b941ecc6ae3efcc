#include "front/fit.h"

#include <string.h>

#include "base/counters.h"
#include "base/policy.h"
#include "front/arrays.h"
#include "front/roster.h"
#include "front/stack.h"
#include "learn/journal.h"

static void stack_set_capacity(struct cache *cache, unsigned cls, size_t capacity)
{
    struct depot *depot = &cache->depots[cls];
    struct bin *bin = &cache->bins[BIN_FIRST + cls];
    size_t size = size_classes[cls].size;
    cache->capacity_bytes += (capacity - depot->capacity) * size;
    depot->capacity = (uint16_t)capacity;
    stack_open(bin, depot);
}

/* On a larger array where the old one is too small; where there is none nothing changes. Arrays are
 * 10 * 2^n words: arrays at equal distances modulo 4 KiB would make the stores of one class block
 * the loads of another (25 cycles a pair of random sizes, 32 with powers of two). */
static void stack_resize(struct cache *cache, unsigned cls, size_t capacity)
{
    struct depot *depot = &cache->depots[cls];
    struct bin *bin = &cache->bins[BIN_FIRST + cls];
    size_t first = size_classes[cls].first + 1u;
    if (capacity > depot->room) {
        void **array = array_take(cache, capacity + 1);
        if (array == NULL)
            return;
        size_t used = stack_used(bin, depot);
        memcpy(array, depot->base, (used + 1) * sizeof *array);
        if (depot->room >= first)
            array_give(cache, depot->base, depot->room + 1u);
        depot->base = array;
        depot->room = capacity & ROOM_MOST;
        store_relaxed(&bin->top, array + used);
    }
    stack_set_capacity(cache, cls, capacity);
}

void stack_start_capacity(struct cache *cache, unsigned cls)
{
    const struct size_class *c = &size_classes[cls];
    stack_set_capacity(cache, cls, c->first);
    cache->depots[cls].learned = c->first;
    if (policy.learn != LEARN)
        stack_resize(cache, cls, capacity_fixed(c->size, c->first, &policy));
}

/* What a thread's stacks may hold: threads at work share what four may have. With 24 of them on
 * blocks of 16 to 4096 bytes that takes 0.8 of the time of all having as much as one alone, since
 * what they hand around fits the processor's cache, and 0.35 of the memory. Shared by two it would
 * be 0.25, but four threads of their own blocks of 8 to 32 KiB, or that exchange blocks of 1 to 8
 * KiB, take 1.15 to 1.2 of the time. */
#define SHARERS 4
#define SHARE_LEAST (256 * KiB)

static size_t cache_share(void)
{
    size_t awake = caches_awake();
    if (awake <= SHARERS)
        return policy.thread_bytes;
    size_t share = policy.thread_bytes / awake * SHARERS;
    size_t least = SHARE_LEAST < policy.thread_bytes ? SHARE_LEAST : policy.thread_bytes;
    return share > least ? share : least;
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

void stack_fit(struct cache *cache, unsigned cls, struct capacity_seen seen)
{
    struct depot *depot = &cache->depots[cls];
    seen.burst = capacity_turn(&depot->ways, seen.event, depot->capacity);
    seen.ways = depot->ways;
    if (policy.learn == LEARN_FROZEN)
        return;
    seen.size = size_classes[cls].size;
    seen.first = size_classes[cls].first;
    seen.capacity = depot->learned;
    seen.held = cache->capacity_bytes;
    seen.share = cache_share();
    struct capacity next = capacity_step(&seen, &policy);
    if (next.why == CAPACITY_FITS)
        return;
    if (journal_open())
        journal_stack(cls, depot->learned, next);
    depot->learned = (uint16_t)next.blocks;
    if (policy.learn == LEARN && next.blocks != depot->capacity) {
        stack_resize(cache, cls, next.blocks);
        depot->learned = depot->capacity;
    }
}

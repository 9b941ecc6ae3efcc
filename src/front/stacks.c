#include "front/stacks.h"

#include "back/use.h"
#include "base/counters.h"
#include "base/memory.h"
#include "base/policy.h"
#include "front/adapt.h"
#include "front/cache.h"
#include "front/closing.h"
#include "front/registry.h"
#include "heap/shards.h"
#include "heap/transfer.h"
#include "learn/laws.h"
#include "os/os.h"

unsigned begun_from(const struct cache *cache, unsigned stack)
{
    for (unsigned i = stack / 64; i < sizeof cache->begun / sizeof *cache->begun; i++) {
        uint64_t left = cache->begun[i];
        if (i == stack / 64)
            left &= ~low_bits(stack % 64);
        if (left != 0)
            return i * 64 + lowest_bit(left);
    }
    return STACKS;
}

void bin_close(struct bin *bin)
{
    store_relaxed(&bin->topmost, stack_mark());
    store_relaxed(&bin->top, NULL);
    store_relaxed(&bin->limit, NULL);
}

void cache_reset(struct cache *cache)
{
    cache->capacity_bytes = cache->capacity_weight = cache->outflow = cache->large_bytes = 0;
    sub_relaxed(&use.stacked, cache->large_told);
    cache->large_told = 0;
    arrays_reset(cache);
    for (unsigned stack = begun_from(cache, 0); stack < STACKS;
         stack = begun_from(cache, stack + 1)) {
        bin_close(&cache->bins[BIN_FIRST + stack]);
        cache->cold[stack] = (struct cold_bin){0};
    }
    words_clear(cache->begun, sizeof cache->begun);
}

/* The blocks that a new thread frees first mostly come from another thread, which keeps their
 * neighbours. If the new thread got them again from malloc, each write to them would take the cache
 * line away from the other thread. */
static_assert(LAW_DIRECT_FREES < 16, "fits direct_frees");

static void stack_begin(struct cache *cache, unsigned stack)
{
    ASSERT(lock_held(cache->lock));
    ASSERT(!stack_begun(&cache->cold[stack]));
    struct bin *bin = &cache->bins[BIN_FIRST + stack];
    struct cold_bin *cold = &cache->cold[stack];
    void **array = array_first(cache, stack);
    *array = stack_mark();
    cold->base = array;
    stack_set_top(bin, array);
    cache->begun[stack / 64] |= (uint64_t)1 << stack % 64;
    cold->room = size_classes[stack].first;
    bool shares_lines = CACHE_LINE / size_classes[stack].size > 1;
    bool others = shares_lines && caches_living() > 1 && !stack_is_thin(stack);
    cold->direct_frees = others ? LAW_DIRECT_FREES : 0;
    stack_start_capacity(cache, stack);
    stack_settle_closing(cache, stack);
}

void stack_settle(struct cache *cache, unsigned stack)
{
    ASSERT(lock_held(cache->lock));
    struct bin *bin = &cache->bins[BIN_FIRST + stack];
    struct cold_bin *cold = &cache->cold[stack];
    if (unlikely(!stack_begun(cold)))
        stack_begin(cache, stack);
    size_t used = stack_used(bin, cold);
    ASSERT(used <= cold->room && cold->capacity <= cold->room);
    stack_set_top(bin, cold->base + used);
}

COLD void cache_flows(struct cache *cache)
{
    ASSERT(lock_held(cache->lock));
    cache->ebb = 0;
    cache->most_taken = (ptrdiff_t)cache->taken > 0 ? cache->taken : 0;
    cache_close(cache, CLOSED_RESTS, false);
}

void cache_took(struct cache *cache, size_t bytes)
{
    ASSERT(lock_held(cache->lock));
    cache->taken += bytes;
    if (unlikely(cache->ebb > 0))
        cache_flows(cache);
    if ((ptrdiff_t)cache->taken > (ptrdiff_t)cache->most_taken)
        cache->most_taken = cache->taken;
}

/* The allocation clock is everybody's, so threads advance it in steps of a slice. */
void cache_gave(struct cache *cache, size_t bytes)
{
    ASSERT(lock_held(cache->lock));
    cache->taken -= bytes;
    cache->unclocked += bytes;
    if (cache->unclocked >= SLICE) {
        clock_advance(cache->unclocked);
        cache->unclocked = 0;
    }
}

struct finding stack_put_oldest(struct cache *cache, unsigned stack, size_t n, bool by_transfer)
{
    ASSERT(lock_held(cache->lock));
    struct bin *bin = &cache->bins[BIN_FIRST + stack];
    struct cold_bin *cold = &cache->cold[stack];
    void **oldest = cold->base + 1;
    size_t used = stack_used(bin, cold);
    ASSERT(n <= used && used <= cold->room);
    size_t sent = by_transfer ? transfer_put(stack, oldest, n) : 0;
    struct finding found = shards_put(oldest + sent, n - sent);
    words_move(oldest, oldest + n, used - n);
    stack_set_top(bin, cold->base + used - n);
    cache_gave(cache, n * size_classes[stack].size);
    if (stack_is_large(stack))
        cache->large_bytes -= n * size_classes[stack].size;
    return found;
}

size_t stacks_bytes(const struct cache *cache)
{
    size_t bytes = 0;
    for (unsigned stack = begun_from(cache, 0); stack < STACKS;
         stack = begun_from(cache, stack + 1))
        bytes += stack_used(&cache->bins[BIN_FIRST + stack], &cache->cold[stack]) *
                 size_classes[stack_class(stack)].size;
    return bytes;
}

struct finding stack_put_all(struct cache *cache, unsigned stack)
{
    size_t used = stack_used(&cache->bins[BIN_FIRST + stack], &cache->cold[stack]);
    return stack_put_oldest(cache, stack, used, false);
}

struct finding stacks_put(struct cache *cache, unsigned first, unsigned end)
{
    struct finding found = {MISUSE_NONE, NULL};
    for (unsigned stack = begun_from(cache, first); stack < end;
         stack = begun_from(cache, stack + 1)) {
        stack_settle(cache, stack);
        finding_keep(&found, stack_put_all(cache, stack));
    }
    return found;
}

/* The part of the heap check for threads' caches and transfer caches. */
#include "back/meta.h"
#include "base/memory.h"
#include "front/ahead.h"
#include "front/cache.h"
#include "front/registry.h"
#include "heap/shard.h"
#include "heap/shards.h"
#include "heap/slab.h"
#include "heap/transfer.h"
#include "report/heap_check.h"

/* Sets p's mark; false if it is set already. */
static bool mark(struct check_walk *walk, const void *p)
{
    const struct check_superslab *found = check_find(walk, p);
    if (found == NULL)
        return true;
    size_t grain = (size_t)((const char *)p - found->s->base) / CLASS_GRAIN;
    uint64_t *word = &walk->marks[found - walk->superslabs][grain / 64];
    uint64_t bit = (uint64_t)1 << grain % 64;
    bool first = (*word & bit) == 0;
    *word |= bit;
    return first;
}

/* The slab of p, checked as far as to be read; null where p is in none. */
static struct slab *slab_of(const void *p)
{
    struct slab *slab = bin_of_slab(map_bin(p)) ? map_owner(p) : NULL;
    if (slab == NULL || !meta_holds(slab, sizeof *slab + sizeof(uint64_t)))
        return NULL;
    return slab->cls < CLASSES ? slab : NULL;
}

/* A block that lies at `slot` in a stack or transfer cache of a class. */
static void check_block(struct check_walk *walk, void *const *slot, unsigned cls,
                        enum check_rule rule)
{
    const void *p = *slot;
    const struct slab *slab = slab_of(p);
    if (slab == NULL || slab->cls != cls || !slab_begins(slab, p)) {
        check_break(walk, rule, slot, cls, slab == NULL ? CLASSES : slab->cls);
        return;
    }
    if (slab_check(slab, p) == MISUSE_FREE)
        check_break(walk, CHECK_BLOCK_FREE, p, 0, 1);
    if (!mark(walk, p))
        check_break(walk, CHECK_BLOCK_TWICE, p, 1, 2);
}

/* Whether an array of a stack lies in one of the cache's chunks. */
static bool in_chunk(const struct cache *cache, void *const *base, size_t words)
{
    for (unsigned i = 0; i < cache->chunk_count && i < CHUNKS_MOST; i++) {
        size_t offset = (size_t)((const char *)base - cache->chunks[i]);
        if (offset < chunk_bytes(i))
            return offset + words * sizeof(void *) <= chunk_bytes(i);
    }
    return false;
}

/* Whether the stack lies in its array; its slots may be read then. */
static bool stack_bounds(struct check_walk *walk, const struct cache *cache, unsigned stack)
{
    const struct bin *bin = &cache->bins[BIN_FIRST + stack];
    const struct cold_bin *cold = &cache->cold[stack];
    if (!stack_begun(cold) && cold->capacity == 0 && bin->limit == NULL)
        return false;
    if (!in_chunk(cache, cold->base, cold->room + (size_t)1) || cold->capacity > cold->room) {
        check_break(walk, CHECK_STACK_BOUNDS, bin, cold->room, cold->capacity);
        return false;
    }
    /* An owner that was stopped while it found its stack empty leaves the top a word below. */
    size_t top = (size_t)(load_relaxed(&bin->top) + 1 - cold->base);
    void **limit = load_relaxed(&bin->limit);
    if (top > cold->capacity + (size_t)1 || (walk->quiet && top == 0) ||
        (limit != NULL && limit != cold->base + cold->capacity)) {
        check_break(walk, CHECK_STACK_BOUNDS, bin, cold->capacity, top - 1);
        return false;
    }
    return true;
}

/* The blocks of one of the threads' stacks, and what is noted as the topmost. */
static void check_blocks(struct check_walk *walk, void *const *blocks, size_t used,
                         const void *topmost, const void *where, unsigned cls)
{
    const void *expected = used > 0 ? blocks[used - 1] : stack_mark();
    check_same(walk, CHECK_STACK_TOPMOST, where, (size_t)expected, (size_t)topmost);
    for (size_t i = 0; i < used; i++)
        check_block(walk, &blocks[i], cls, CHECK_STACK_BLOCK);
}

/* Without the slots where the owner may be pushing and popping. */
static void check_stack(struct check_walk *walk, const struct cache *cache, unsigned stack,
                        bool slots)
{
    const struct bin *bin = &cache->bins[BIN_FIRST + stack];
    const struct cold_bin *cold = &cache->cold[stack];
    if (stack_bounds(walk, cache, stack) && slots)
        check_blocks(walk, cold->base + 1, stack_used(bin, cold), bin->topmost, bin,
                     stack_class(stack));
}

static void check_ahead(struct check_walk *walk, const struct cache *cache)
{
    for (unsigned cls = 0; cls < AHEAD_CLASSES; cls++) {
        void **blocks = NULL;
        const struct ahead *ahead = &cache->ahead[cls];
        size_t used = ahead_used(cache, cls, &blocks);
        check_blocks(walk, blocks, used, ahead->topmost, ahead, cls);
    }
}

static void check_cache(struct check_walk *walk, const struct cache *cache, bool slots)
{
    size_t capacity = 0;
    size_t weight = 0;
    for (unsigned stack = 0; stack < STACKS; stack++) {
        check_stack(walk, cache, stack, slots);
        size_t size = size_classes[stack].size;
        if (stack_is_large(stack))
            continue;
        capacity += cache->cold[stack].capacity * size;
        weight += cache->cold[stack].capacity * capacity_weight(size);
    }
    if (slots)
        check_ahead(walk, cache);
    check_same(walk, CHECK_CACHE_CAPACITY, cache, capacity, cache->capacity_bytes);
    check_same(walk, CHECK_CACHE_CAPACITY, cache, weight, cache->capacity_weight);
}

static void check_caches(struct check_walk *walk)
{
    size_t threads[SHARDS_MOST];
    words_clear(threads, sizeof threads);
    for (const struct cache *cache = caches_every(); cache != NULL; cache = cache->every) {
        enum ownership whose = registry_ownership(cache);
        /* What an orphan's thread was just doing when the fork came is not undone yet. */
        check_cache(walk, cache,
                    whose == CACHE_UNUSED || (whose == CACHE_LIVING && walk->quiet) ||
                        cache == cache_current());
        threads[cache->shard % SHARDS_MOST] += whose != CACHE_UNUSED;
    }
    check_same(walk, CHECK_CACHE_COUNT, caches_count(), walk->accounts->caches, *caches_count());
    for (unsigned i = 0; i < shards_made() && walk->quiet; i++)
        check_same(walk, CHECK_SHARD_THREADS, shard_threads(i), threads[i], *shard_threads(i));
}

static void check_transfer(struct check_walk *walk, unsigned cls)
{
    uint32_t *count, capacity;
    void **blocks = transfer_inside(cls, &count, &capacity);
    if (*count > capacity) {
        check_break(walk, CHECK_TRANSFER_BOUNDS, count, capacity, *count);
        return;
    }
    for (uint32_t i = 0; i < *count; i++)
        check_block(walk, &blocks[i], cls, CHECK_TRANSFER_BLOCK);
}

void check_fronts(struct check_walk *walk)
{
    check_caches(walk);
    for (unsigned cls = 0; cls < CLASSES; cls++)
        check_transfer(walk, cls);
}

#include "front/ahead.h"

#include "front/cache.h"

static_assert(offsetof(struct ahead, topmost) == offsetof(struct bin, topmost) &&
                  offsetof(struct ahead, top) == offsetof(struct bin, top),
              "cache_pop takes it for a bin");

void ahead_close(struct cache *cache)
{
    for (unsigned cls = 0; cls < AHEAD_CLASSES; cls++) {
        store_relaxed(&cache->ahead[cls].topmost, stack_mark());
        store_relaxed(&cache->ahead[cls].top, NULL);
    }
}

size_t ahead_used(const struct cache *cache, unsigned cls, void ***blocks)
{
    struct sampler *sampler = load_relaxed(&cache->sampler);
    if (cls >= AHEAD_CLASSES || sampler == NULL)
        return 0;
    void **base = sampler->ahead[cls];
    void **top = load_relaxed(&cache->ahead[cls].top);
    *blocks = base + 1;
    /* A thread that was stopped while it found a closed one empty leaves the top below null. */
    bool any = top > base && top <= base + AHEAD_MOST;
    return any ? (size_t)(top - base) : 0;
}

SLOW size_t ahead_fill(struct cache *cache, unsigned cls, size_t n)
{
    struct ahead *ahead = &cache->ahead[cls];
    struct bin *bin = &cache->bins[BIN_FIRST + cls];
    n = smaller(smaller(n, AHEAD_MOST), stack_used(bin, &cache->cold[cls]));
    if (n == 0 || ahead->topmost != stack_mark())
        return 0;
    /* As cache_pop_whole does with one: so a fork may come at any moment. */
    void **top = load_own(&bin->top);
    store_release(&bin->top, top - n);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    void *topmost = load_own(&bin->topmost);
    if (unlikely(topmost == stack_mark())) {
        store_own(&bin->top, top);
        return 0;
    }
    void **base = cache->sampler->ahead[cls];
    store_own(&base[0], stack_mark());
    for (size_t i = 1; i < n; i++)
        store_own(&base[i], load_own(top - n + i));
    store_own(&base[n], topmost);
    store_own(&bin->topmost, load_own(top - n));
    store_relaxed(&ahead->topmost, topmost);
    store_release(&ahead->top, base + n);
    return n;
}

bool ahead_holds(const struct cache *cache, unsigned cls, const void *p)
{
    void **blocks = NULL;
    size_t used = ahead_used(cache, cls, &blocks);
    for (size_t i = 0; i < used && i < AHEAD_MOST; i++)
        if (load_relaxed(&blocks[i]) == p)
            return true;
    return false;
}

#include "life/visits.h"

#include "back/use.h"
#include "base/policy.h"
#include "front/registry.h"
#include "front/stacks.h"
#include "heap/page_purge.h"
#include "life/purge.h"

/* So much, and an eighth of the most that was in use, may lie idle unseen. */
#define UNSEEN MiB

/* Bytes; of blocks in slabs that others keep in use it is what was freed and not taken again. */
static size_t idle(const struct cache *cache)
{
    size_t dirty = load_relaxed(&use.dirty_slices) * SLICE + load_relaxed(&use.dirty_huge);
    return larger(dirty, shards_sparse() ? cache->outflow : 0);
}

/* A program that frees and takes the same again and again most likely does it once more: near the
 * end of what it freed last time is soon enough. The frees that come here take twice the time. */
static size_t expected_to_return(struct cache *cache, size_t bytes)
{
    if (bytes > cache->ebb) {
        cache->ebb = bytes;
    } else if (bytes < cache->ebb / 2) {
        cache->usual_ebb = cache->ebb;
        cache->ebb = bytes;
    }
    return cache->usual_ebb - cache->usual_ebb / 16;
}

static enum cache_visits wanted(struct cache *cache)
{
    if (purge_goes_on())
        return VISIT_EACH;
    if (caches_living() > 1 || load_relaxed(&keeping.forever))
        return VISIT_NEVER;
    size_t bytes = idle(cache);
    size_t unseen = UNSEEN + load_relaxed(&use.most) / 8;
    return bytes > larger(unseen, expected_to_return(cache, bytes)) ? VISIT_SOME : VISIT_NEVER;
}

void visits_settle(struct cache *cache)
{
    enum cache_visits visits = wanted(cache);
    if (unlikely(cache->visits != visits))
        cache_ask_visits(cache, visits);
}

COLD bool visits_find_rest(struct cache *cache)
{
    if (!purge_rest_looks())
        return false;
    /* What goes back now does not return. */
    cache->ebb = cache->usual_ebb = 0;
    return true;
}

#include "life/visits.h"

#include "back/use.h"
#include "base/policy.h"
#include "front/registry.h"
#include "front/stacks.h"
#include "heap/page_purge.h"
#include "life/purge.h"

/* Bytes. Of blocks in slabs that others keep in use: what was freed and not taken again, since
 * there last was no slab whose pages could go back. */
static size_t idle(struct cache *cache)
{
    size_t dirty = load_relaxed(&use.dirty_slices) * SLICE + load_relaxed(&use.dirty_huge);
    struct idleness *i = &cache->idleness;
    size_t gone = shards_sparse() ? smaller(i->gone, cache->outflow) : cache->outflow;
    i->ebb = excess(i->ebb, excess(gone, i->gone)); /* not because the program took it */
    i->gone = gone;
    return larger(dirty, cache->outflow - gone);
}

static size_t all_bytes(void)
{
    return load_relaxed(&use.slices) + load_relaxed(&use.huge) +
           load_relaxed(&use.dirty_slices) * SLICE + load_relaxed(&use.dirty_huge);
}

static bool too_much(size_t bytes, size_t unseen)
{
    size_t live = excess(all_bytes(), bytes);
    return idleness_closes(bytes, live, unseen, load_relaxed(&use.dirty_huge) > unseen);
}

static enum cache_visits wanted(struct cache *cache)
{
    struct idleness *i = &cache->idleness;
    if (purge_goes_on())
        return VISIT_EACH;
    if (caches_living() > 1 || load_relaxed(&keeping.forever)) {
        *i = (struct idleness){0};
        return VISIT_NEVER;
    }
    size_t most = load_relaxed(&use.most);
    size_t unseen = idleness_unseen(most);
    size_t bytes = idle(cache);
    idleness_follow(i, bytes, unseen);
    bool closed = cache->visits != VISIT_NEVER;
    bool much = closed ? idleness_keeps_closed(bytes, most) : too_much(bytes, unseen);
    if (!much || idleness_in_vain(i))
        return VISIT_NEVER;
    return idleness_comes_back(i, bytes) && !purge_rest_looks() ? VISIT_NEVER : VISIT_SOME;
}

void visits_settle(struct cache *cache)
{
    enum cache_visits visits = wanted(cache);
    if (unlikely(cache->visits != visits))
        cache_ask_visits(cache, visits);
}

void visits_begin(struct cache *cache)
{
    if (cache->visits == VISIT_NEVER && caches_living() <= 1 && !load_relaxed(&keeping.forever))
        cache_ask_visits(cache, VISIT_SOME);
}

void visits_settle_after(struct cache *cache, size_t returned)
{
    if (returned > 0)
        idleness_returned(&cache->idleness, returned);
    visits_settle(cache);
}

COLD bool visits_find_rest(struct cache *cache)
{
    if (!purge_rest_looks())
        return false;
    idleness_looked(&cache->idleness);
    return true;
}

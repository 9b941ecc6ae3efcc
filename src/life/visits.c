#include "life/visits.h"

#include "back/use.h"
#include "base/policy.h"
#include "front/registry.h"
#include "front/stacks.h"
#include "heap/page_purge.h"
#include "life/purge.h"

/* So much, and an eighth of the most that was in use, may lie idle before the stacks are closed.
 * For small blocks it may be one and a half times what is in use: a program that frees many of them
 * fills stack after stack, and so comes to the slow path anyhow. Closed stacks open again when so
 * much, and a thirty-second of the most, is left: what a rest gives back at its pace is then nearly
 * all. */
#define UNSEEN MiB
#define CLOSES_AT 8
#define OPENS_AT 32

/* So many looks of a program that rests, one in each tick of the clock, and nothing went back: the
 * kernel refuses, say because the program's memory is locked. */
#define IN_VAIN_MOST 100

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

/* A program that frees and takes the same again and again most likely does it once more: near the
 * end of what it freed last time is soon enough. */
static void follow(struct idleness *i, size_t bytes, size_t unseen)
{
    if (i->falls) {
        i->falls = bytes <= i->ebb + unseen;
        i->ebb = i->falls ? smaller(i->ebb, bytes) : bytes;
    } else if (bytes < i->ebb / 2 && i->ebb > unseen) {
        i->returns = i->ebb;
        i->ebb = bytes;
        i->falls = true;
    } else {
        i->ebb = larger(i->ebb, bytes);
    }
}

static size_t all_bytes(void)
{
    return load_relaxed(&use.slices) + load_relaxed(&use.huge) +
           load_relaxed(&use.dirty_slices) * SLICE + load_relaxed(&use.dirty_huge);
}

static bool too_much(size_t bytes, size_t unseen)
{
    size_t live = excess(all_bytes(), bytes);
    bool huge = load_relaxed(&use.dirty_huge) > unseen;
    return bytes > (huge ? unseen : larger(unseen, live + live / 2));
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
    size_t unseen = UNSEEN + most / CLOSES_AT;
    size_t bytes = idle(cache);
    follow(i, bytes, unseen);
    bool closed = cache->visits != VISIT_NEVER;
    bool much = closed ? bytes > UNSEEN + most / OPENS_AT : too_much(bytes, unseen);
    if (!much || i->in_vain == IN_VAIN_MOST)
        return VISIT_NEVER;
    bool soon = bytes <= i->returns - i->returns / 16;
    return soon && !purge_rest_looks() ? VISIT_NEVER : VISIT_SOME;
}

void visits_settle(struct cache *cache)
{
    enum cache_visits visits = wanted(cache);
    if (unlikely(cache->visits != visits))
        cache_ask_visits(cache, visits);
}

/* What went back does not return. */
void visits_settle_after(struct cache *cache, size_t returned)
{
    struct idleness *i = &cache->idleness;
    if (returned > 0) {
        i->ebb = excess(i->ebb, returned);
        i->returns = excess(i->returns, returned);
        i->in_vain = 0;
    }
    visits_settle(cache);
}

COLD bool visits_find_rest(struct cache *cache)
{
    if (!purge_rest_looks())
        return false;
    cache->idleness.in_vain += cache->idleness.in_vain < IN_VAIN_MOST;
    return true;
}

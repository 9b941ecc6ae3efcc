/* While a class compacts its stack is closed, so each free comes here. It tells a turnover, in
 * which new blocks come between the frees, from frees alone by what it left: the stack as high as
 * after the last free, or higher, with the same block in the topmost slot of then. A malloc in
 * between has popped that block, and what was pushed there since is most likely another. */
#include "front/compaction.h"

#include "base/atomic.h"
#include "base/counters.h"
#include "base/policy.h"
#include "front/journal.h"
#include "front/stack.h"
#include "front/stacks.h"
#include "heap/shards.h"
#include "learn/compaction.h"
#include "os/lock.h"
#include "os/os.h"

static_assert(LAW_FREES_A_LOOK <= UINT8_MAX, "fits frees and in_vain");

static uint16_t mark_of(void *const *slot) { return (uint16_t)((uintptr_t)*slot / CLASS_GRAIN); }

/* Notes what is in the stack after a free. */
static void leave(struct cold_bin *cold, void *const *top)
{
    cold->left = (uint16_t)(top - cold->base);
    cold->mark = mark_of(top);
}

void compaction_flushed(struct cold_bin *cold) { leave(cold, cold->base); }

static COLD void journal_compaction(unsigned cls, bool begins)
{
    const struct journal_entry entry = {.subject = begins ? JOURNAL_COMPACTS : JOURNAL_COMPACTED,
                                        .thread = os_thread_id(),
                                        .size = size_classes[cls].size,
                                        .clock = clock_now()};
    journal_add(&entry);
}

static size_t begun; /* atomic */

size_t compactions_begun(void) { return load_relaxed(&begun); }

bool compaction_try(struct cache *cache, unsigned cls)
{
    ASSERT(lock_held(cache->lock));
    struct cold_bin *cold = &cache->cold[cls];
    if (cold->compacts || cls >= CLASS_LARGE || !policy.compact)
        return false;
    if (cold->in_vain > 0) {
        cold->in_vain--;
        return false;
    }
    if (!shard_is_thin(cache->shard, cls))
        return false;
    cold->compacts = true;
    cache->compacting++;
    compaction_flushed(cold);
    cold->moved = 0;
    cold->frees = LAW_FREES_A_LOOK; /* a flush comes of many frees */
    add_relaxed(&begun, 1);
    if (journal_open())
        journal_compaction(cls, true);
    return true;
}

/* Whether no malloc came since the last free. */
static bool free_follows(const struct cold_bin *cold, void *const *top)
{
    return top >= cold->base + cold->left && mark_of(cold->base + cold->left) == cold->mark;
}

static COLD void end(struct cache *cache, unsigned cls)
{
    ASSERT(lock_held(cache->lock));
    cache->cold[cls].compacts = false;
    cache->compacting--;
    stack_open(cache, cls);
    if (journal_open())
        journal_compaction(cls, false);
}

static enum compaction_free stays(struct cache *cache, unsigned cls, void *p, bool follows)
{
    struct bin *bin = &cache->bins[BIN_FIRST + cls];
    struct cold_bin *cold = &cache->cold[cls];
    void **top = load_own(&bin->top);
    size_t used = (size_t)(top - cold->base);
    if (used >= cold->capacity)
        return COMPACTION_NOT;
    block_seal(p);
    bin_push(bin, top, p);
    leave(cold, top + 1);
    if (compaction_waits(cold->frees) && cache->visits == VISIT_NEVER)
        store_own(&bin->limit, cold->base + smaller(used + LAW_FREES_A_LOOK, cold->capacity));
    if (follows || !compaction_ends(++cold->in_vain))
        return COMPACTION_DONE;
    if (!cache_enter(cache))
        return COMPACTION_DONE;
    if (cold->compacts)
        end(cache, cls);
    lock_release(cache->lock);
    return compaction_gained(cold->moved, size_classes[cls].size) ? COMPACTION_ENDED
                                                                  : COMPACTION_DONE;
}

/* Whether this free is one of those that give memory back, or look whether the program rests. */
static bool is_visit(struct cache *cache)
{
    return cache->visits == VISIT_EACH ||
           (cache->visits == VISIT_SOME && ++cache->watched % LAW_FREES_A_LOOK == 0);
}

enum compaction_free compaction_free(struct cache *cache, unsigned cls, void *p,
                                     struct finding *found)
{
    struct bin *bin = &cache->bins[BIN_FIRST + cls];
    struct cold_bin *cold = &cache->cold[cls];
    void **top = load_own(&bin->top);
    if (unlikely(!BIN_BLOCK_BEGINS(bin, p)) || unlikely(block_sealed(p)) ||
        unlikely(!cache_keeps(cache)) || unlikely(load_own(&bin->topmost) == p) ||
        unlikely(is_visit(cache)))
        return COMPACTION_NOT;
    bool follows = free_follows(cold, top);
    cold->frees = follows ? cold->frees + (cold->frees < UINT8_MAX) : 0;
    store_own(&bin->limit, NULL);
    struct slab *slab;
    if (compaction_waits(cold->frees) || !shard_slab_is_thin(p, &slab))
        return stays(cache, cls, p, follows);
    if (unlikely(!cache_enter(cache)))
        return COMPACTION_NOT;
    block_seal(p);
    *found = shards_put_in(slab, p);
    cache_gave(cache, size_classes[cls].size);
    cache->outflow += size_classes[cls].size;
    lock_release(cache->lock);
    leave(cold, top);
    cold->in_vain = 0;
    cold->moved = (uint16_t)(cold->moved + (cold->moved < UINT16_MAX));
    return COMPACTION_DONE;
}

#include "heap/shard.h"

#include "back/map.h"
#include "back/meta.h"
#include "back/slices.h"
#include "base/atomic.h"
#include "base/counters.h"
#include "base/policy.h"
#include "learn/compaction.h"
#include "os/os.h"

struct shard first_shard = {.lock = LOCK(SHARD)};
struct shard *shards[SHARDS_MOST] = {&first_shard};
unsigned shard_count = 1;
size_t slabs_sparse;
size_t class_slabs[CLASS_SLICES_FIRST];

/* A slab's blocks begin in its first slice: others it has for one block alone. A block that has
 * whole slices for itself is in no program's hands yet. */
void slab_map(const struct slab *slab, void *owner)
{
    unsigned bin = load_relaxed(&slab->shard) == SHARD_SAMPLED ? BIN_SAMPLED
                   : slab->thin                                ? BIN_FIRST + CLASSES + slab->cls
                   : slab->cls < CLASS_SLICES_FIRST            ? BIN_FIRST + slab->cls
                                                               : BIN_WHOLE_FREE;
    map_set(slab->base, 1, owner != NULL ? bin : BIN_FOREIGN, owner);
}

COLD void partial_absent(struct shard *shard, unsigned cls, size_t pages)
{
    shard->begun[cls].absent += pages;
    store_relaxed(&shard->absent, shard->absent + pages);
}

void slab_not_sparse(struct slab *slab)
{
    ASSERT(lock_held(&load_acquire(&shards[load_relaxed(&slab->shard)])->lock));
    if (list_empty(&slab->sparse))
        return;
    list_remove(&slab->sparse);
    sub_relaxed(&slabs_sparse, 1);
}

void slabs_give_back(struct pairing_node *emptied)
{
    ASSERT(!lock_rank_held(RANK_SHARD) || fork_holds_locks());
    while (emptied != NULL) {
        struct slab *slab = (struct slab *)emptied;
        const struct size_class *c = &size_classes[slab->cls];
        ASSERT(slab->free == slab->places && list_empty(&slab->sparse));
        emptied = emptied->next;
        if (unlikely(slab->absent != 0))
            slices_lack(slab->home, slab->base, c->slices, count_bits(slab->absent) * os_page);
        if (slab->cls < CLASS_SLICES_FIRST)
            sub_relaxed(&class_slabs[slab->cls], 1);
        slices_give(slab->home, slab->base, c->slices);
        meta_give(slab, slab_bytes(c));
    }
}

static SLOW void change_lock(struct shard **held, struct shard *shard)
{
    if (*held != NULL)
        lock_release(&(*held)->lock);
    *held = shard;
    lock_take(&shard->lock);
}

/* The slab's shard can change, and by a program's error
 * the slab itself can be gone, until its lock is held. */
struct slab *slab_lock(const void *p, struct shard **held)
{
    for (;;) {
        void *owner;
        if (!bin_of_slab(map_find(p, &owner)) || unlikely(owner == NULL))
            return NULL;
        struct slab *slab = owner;
        struct shard *shard = load_acquire(&shards[load_relaxed(&slab->shard) % SHARDS_MOST]);
        if (likely(shard == *held))
            return slab;
        change_lock(held, shard);
    }
}

/* No place is better than one in the lowest slab. */
static bool is_thin(struct shard *shard, const struct slab *slab)
{
    return shard->begun[slab->cls].compacts && slab->free > 0 &&
           slab != lowest_partial(shard, slab->cls) && compaction_thin(slab->free, slab->places);
}

void slab_settle_thin(struct shard *shard, struct slab *slab)
{
    ASSERT(lock_held(&shard->lock));
    bool thin = is_thin(shard, slab);
    if (thin == slab->thin)
        return;
    slab->thin = thin;
    slab_map(slab, slab);
}

void slab_settle(struct shard *shard, struct slab *slab, bool was_full,
                 struct pairing_node **emptied)
{
    ASSERT(lock_held(&shard->lock));
    ASSERT(load_relaxed(&slab->shard) == shard->index);
    const struct size_class *c = &size_classes[slab->cls];
    ASSERT(slab->free <= slab->places);
    bool empty = slab->free == slab->places;
    if (was_full && slab->free > 0 && !empty)
        partial_add(shard, slab);
    if (!was_full && empty)
        partial_remove(shard, slab);
    if (empty) {
        if (unlikely(slab->thin))
            shard->begun[slab->cls].regained +=
                c->slices * SLICE - count_bits(slab->absent) * os_page;
        slab_map(slab, NULL);
        slab_not_sparse(slab);
        slab->node.next = *emptied;
        *emptied = &slab->node;
        return;
    }
    if (slab_worth_a_look(slab))
        slab_note_sparse(shard, slab);
    if (unlikely(shard->begun[slab->cls].compacts) && !slab->thin)
        slab_settle_thin(shard, slab);
}

/* ---- when a class compacts ---- */

static COLD void switch_compaction(struct shard *shard, unsigned cls)
{
    struct begun *begun = &shard->begun[cls];
    bool begins = !begun->compacts;
    store_relaxed(&begun->compacts, begins);
    begun->compactions += begins;
    struct pairing_heap *slabs = &shard->partial[cls];
    for (struct pairing_node *node = slabs->root; node != NULL; node = pairing_after(slabs, node))
        slab_settle_thin(shard, (struct slab *)node);
}

void shard_settle_compaction(struct shard *shard, unsigned cls)
{
    ASSERT(lock_held(&shard->lock));
    if (cls >= CLASSES_THIN)
        return;
    const struct begun *begun = &shard->begun[cls];
    size_t size = size_classes[cls].size;
    bool differs = begun->compacts ? compaction_ends(begun->free, begun->blocks, size) ||
                                         !load_relaxed(&policy.compact)
                                   : compaction_begins(begun->free, begun->blocks, size, os_page) &&
                                         load_relaxed(&policy.compact);
    if (unlikely(differs))
        switch_compaction(shard, cls);
}

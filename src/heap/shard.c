#include "heap/shard.h"

#include "back/map.h"
#include "back/meta.h"
#include "back/slices.h"
#include "base/atomic.h"
#include "base/counters.h"
#include "learn/looks.h"
#include "os/os.h"

struct shard shards[SHARDS_MOST] = {[0 ... SHARDS_MOST - 1] = {.lock = LOCK(SHARD)}};
unsigned shard_count = 1;
size_t slabs_sparse;

/* A slab's blocks begin in its first slice: others it has for one block alone. A block that has
 * whole slices for itself is in no program's hands yet. */
void slab_map(const struct slab *slab, void *owner)
{
    unsigned bin = slab->cls < CLASS_SLICES_FIRST ? BIN_FIRST + slab->cls : BIN_WHOLE_FREE;
    map_set(slab->base, 1, owner != NULL ? bin : BIN_FOREIGN, owner);
}

void slab_not_sparse(struct slab *slab)
{
    ASSERT(lock_held(&shards[load_relaxed(&slab->shard)].lock));
    if (list_empty(&slab->sparse))
        return;
    list_remove(&slab->sparse);
    sub_relaxed(&slabs_sparse, 1);
}

bool slab_missed(const struct slab *slab)
{
    return (ptrdiff_t)(clock_now() - slab->soon_until) <= 0;
}

void slabs_give_back(struct pairing_node *emptied)
{
    ASSERT(!lock_rank_held(RANK_SHARD) || fork_holds_locks);
    while (emptied != NULL) {
        struct slab *slab = (struct slab *)emptied;
        const struct size_class *c = &size_classes[slab->cls];
        ASSERT(slab->free == c->blocks && list_empty(&slab->sparse));
        emptied = emptied->next;
        if (unlikely(slab->absent != 0) && slab_missed(slab))
            slices_lack(slab->home, slab->base, c->slices, count_bits(slab->absent) * os_page);
        slices_give(slab->home, slab->base, c->slices);
        meta_give(slab, slab_bytes(c));
    }
}

/* The slab's shard can change, and by a program's error
 * the slab itself can be gone, until its lock is held. */
struct slab *slab_lock(const void *p, struct shard **held)
{
    for (;;) {
        struct slab *slab = map_owner(p);
        if (slab == NULL)
            return NULL;
        struct shard *shard = &shards[load_relaxed(&slab->shard) % SHARDS_MOST];
        if (shard != *held) {
            if (*held != NULL)
                lock_release(&(*held)->lock);
            *held = shard;
            lock_take(&shard->lock);
        }
        if (map_owner(p) == slab && &shards[load_relaxed(&slab->shard) % SHARDS_MOST] == shard)
            return bin_of_slab(map_bin(p)) ? slab : NULL;
    }
}

static bool worth_a_look(const struct slab *slab)
{
    const struct size_class *c = &size_classes[slab->cls];
    return slab->free >= c->sparse && slab->free > slab->examined &&
           look_at_slab(slab->free - slab->examined, c->blocks - slab->free) &&
           list_empty(&slab->sparse);
}

void slab_settle(struct shard *shard, struct slab *slab, bool was_full,
                 struct pairing_node **emptied)
{
    ASSERT(lock_held(&shard->lock));
    ASSERT(load_relaxed(&slab->shard) == shard - shards);
    const struct size_class *c = &size_classes[slab->cls];
    ASSERT(slab->free <= c->blocks);
    bool empty = slab->free == c->blocks;
    if (was_full && slab->free > 0 && !empty)
        partial_add(shard, slab);
    if (!was_full && empty)
        partial_remove(shard, slab);
    if (empty) {
        slab_map(slab, NULL);
        slab_not_sparse(slab);
        slab->node.next = *emptied;
        *emptied = &slab->node;
    } else if (worth_a_look(slab)) {
        slab->stamp = clock_now();
        list_push(&shard->sparse, &slab->sparse);
        add_relaxed(&slabs_sparse, 1);
    }
}

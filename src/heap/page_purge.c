#include "heap/page_purge.h"

#include "back/superslabs.h"
#include "base/atomic.h"
#include "base/counters.h"
#include "heap/shard.h"
#include "heap/shards.h"
#include "os/os.h"

/* The slab of the shard that has been sparse for longest, if since before the clock said `before`,
 * taken out of the list. */
static struct slab *slab_sparse(struct shard *shard, size_t before)
{
    ASSERT(lock_held(&shard->lock));
    if (list_empty(&shard->sparse))
        return NULL;
    struct slab *slab = list_entry(shard->sparse.prev, struct slab, sparse);
    if ((ptrdiff_t)(slab->stamp - before) > 0)
        return NULL;
    slab_not_sparse(slab);
    slab->examined = slab->free;
    return slab;
}

/* Slabs with pages that are on their way back, those of many in one call. Their blocks in these
 * pages are taken meanwhile, so nobody is handed one, and the slab can't leave; but it may move to
 * another shard. */
#define RUNS_MOST 256
#define RUNS_OF_SLAB 32 /* every other of 64 pages */

static struct {
    struct {
        struct slab *slab;
        uint64_t pages;
        bool thin; /* when it was claimed: while none of its blocks is free it is not */
    } of[RUNS_MOST];
    unsigned slabs;
    struct os_run runs[RUNS_MOST];
    unsigned run_count;
} leaving; /* lock: purge; empty without it */

/* Runs of pages, from the lowest: takes it out of `pages`. */
static uint64_t run_next(uint64_t *pages, unsigned *first, unsigned *n)
{
    *first = lowest_bit(*pages);
    uint64_t rest = ~(*pages >> *first);
    *n = rest == 0 ? 64 : lowest_bit(rest);
    uint64_t run = low_bits(*n) << *first;
    *pages &= ~run;
    return run;
}

/* Claims the free pages of a slab; returns without its shard's lock. */
static void slab_leave(struct shard *shard, struct slab *slab, uint64_t pages)
{
    ASSERT(lock_held(&shard->lock) && lock_rank_held(RANK_PURGE));
    ASSERT(pages != 0 && leaving.slabs < RUNS_MOST);
    leaving.of[leaving.slabs].thin = slab->thin;
    unsigned claimed = slab_claim(slab, pages);
    partial_frees(shard, slab->cls, -(size_t)claimed);
    if (claimed > 0 && slab->free == 0) {
        partial_remove(shard, slab);
        slab_settle_thin(shard, slab);
    }
    lock_release(&shard->lock);

    superslab_make_small(slab->home);
    leaving.of[leaving.slabs].slab = slab;
    leaving.of[leaving.slabs++].pages = pages;
    while (pages != 0) {
        unsigned first;
        unsigned n;
        run_next(&pages, &first, &n);
        ASSERT(leaving.run_count < RUNS_MOST);
        leaving.runs[leaving.run_count++] =
            (struct os_run){slab->base + first * os_page, n * os_page};
    }
}

/* Purges what leaves; returns how many pages are gone. */
static size_t leaving_purge(void)
{
    ASSERT(lock_rank_held(RANK_PURGE));
    os_purge_runs(leaving.runs, leaving.run_count);
    size_t purged = 0;
    const struct os_run *run = leaving.runs;
    for (unsigned i = 0; i < leaving.slabs; i++) {
        struct slab *slab = leaving.of[i].slab;
        uint64_t gone = 0;
        for (uint64_t pages = leaving.of[i].pages; pages != 0; run++) {
            unsigned first;
            unsigned n;
            uint64_t mask = run_next(&pages, &first, &n);
            if (run->length > 0)
                gone |= mask;
        }
        struct pairing_node *emptied = NULL;
        struct shard *shard = NULL;
        slab_lock(slab->base, &shard);
        bool was_full = slab->free == 0;
        unsigned before = slab->free;
        slab_restore(slab, leaving.of[i].pages);
        if (!was_full) {
            partial_frees(shard, slab->cls, slab->free - before);
            partial_absent(shard, slab->cls, count_bits(gone));
        }
        store_relaxed(&slab->absent, slab->absent | gone);
        if (unlikely(leaving.of[i].thin))
            shard->begun[slab->cls].regained += count_bits(gone) * os_page;
        slab->examined = slab->free;
        slab_settle(shard, slab, was_full, &emptied);
        lock_release(&shard->lock);
        slabs_give_back(emptied);
        purged += count_bits(gone);
    }
    leaving.slabs = leaving.run_count = 0;
    return purged;
}

static void class_sparse_anew(struct shard *shard, unsigned cls)
{
    ASSERT(lock_held(&shard->lock));
    struct pairing_heap *slabs = &shard->partial[cls];
    for (struct pairing_node *node = slabs->root; node != NULL; node = pairing_after(slabs, node)) {
        struct slab *slab = (struct slab *)node;
        if (list_empty(&slab->sparse) && slab->free * size_classes[cls].size >= os_page)
            slab_note_sparse(shard, slab);
    }
}

COLD void shards_sparse_anew(void)
{
    for (unsigned i = 0; i < SHARDS_MOST; i = shard_after(i))
        for (unsigned cls = 0; cls < CLASSES; cls++) {
            lock_take(&shards[i]->lock);
            class_sparse_anew(shards[i], cls);
            lock_release(&shards[i]->lock);
        }
}

bool shards_sparse(void) { return load_relaxed(&slabs_sparse) > 0; }

size_t shards_purge(size_t before, struct purge_room *room)
{
    ASSERT(lock_rank_held(RANK_PURGE));
    ASSERT(leaving.slabs == 0 && leaving.run_count == 0);
    size_t purged = 0;
    for (unsigned i = 0; i < SHARDS_MOST; i = shard_after(i)) {
        for (; room->slabs > 0 && room->bytes > 0; room->slabs--) {
            lock_take(&shards[i]->lock);
            struct slab *slab = slab_sparse(shards[i], before);
            uint64_t pages = slab != NULL ? slab_free_pages(slab) : 0;
            unsigned runs = leaving.run_count;
            if (pages != 0)
                slab_leave(shards[i], slab, pages);
            else
                lock_release(&shards[i]->lock);
            if (slab == NULL)
                break;
            if (leaving.run_count > runs) {
                size_t bytes = count_bits(pages) * os_page;
                room->bytes -= bytes < room->bytes ? bytes : room->bytes;
                room->calls += leaving.run_count - runs;
            }
            if (leaving.run_count > RUNS_MOST - RUNS_OF_SLAB)
                purged += leaving_purge();
        }
    }
    purged = (purged + leaving_purge()) * os_page;
    add_relaxed(&counters.pages.purged, purged);
    return purged;
}

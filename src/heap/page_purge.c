#include "heap/shards.h"

#include "back/superslabs.h"
#include "base/atomic.h"
#include "base/policy.h"
#include "heap/slab.h"
#include "os/os.h"

/* ---- which pages ----
 *
 * A page of a slab is free when every block that has a byte in it is. */

struct block_range {
    unsigned first, end; /* blocks, `end` excluded */
};

/* The blocks that have a byte in pages [first, end). */
static struct block_range blocks_in(const struct slab *slab, unsigned first, unsigned end)
{
    const struct size_class *c = &size_classes[slab->cls];
    unsigned last = blocks_before(c, end * os_page + c->size - CLASS_GRAIN);
    return (struct block_range){blocks_before(c, first * os_page),
                                last < c->blocks ? last : c->blocks};
}

/* The part of word `index` that the range covers. */
static uint64_t range_mask(struct block_range s, unsigned index)
{
    unsigned from = index * 64;
    unsigned first = s.first > from ? s.first - from : 0;
    unsigned end = s.end < from + 64 ? s.end - from : 64;
    return low_bits(end) & ~low_bits(first);
}

static bool all_free(const struct slab *slab, struct block_range s)
{
    unsigned n = s.end - s.first;
    if (likely(n <= 64)) { /* of two words at most */
        const uint64_t *word = &slab->words[s.first / 64];
        unsigned shift = s.first % 64;
        uint64_t bits = *word >> shift;
        if (shift + n > 64)
            bits |= word[1] << (64 - shift);
        return (~bits & low_bits(n)) == 0;
    }
    for (unsigned i = s.first / 64; i * 64 < s.end; i++) {
        uint64_t mask = range_mask(s, i);
        if ((slab->words[i] & mask) != mask)
            return false;
    }
    return true;
}

/* Pages without a byte of a taken block, where blocks are few: by what is taken. */
static uint64_t pages_left(const struct slab *slab, unsigned pages)
{
    const struct size_class *c = &size_classes[slab->cls];
    unsigned page_bits = lowest_bit(os_page);
    uint64_t left = low_bits(pages) & ~slab->absent;
    for (uint64_t taken = low_bits(c->blocks) & ~slab->words[0]; taken != 0; taken &= taken - 1) {
        size_t offset = (size_t)lowest_bit(taken) * c->size;
        unsigned end = (unsigned)((offset + c->size - 1) >> page_bits) + 1;
        left &= ~low_bits(end) | low_bits((unsigned)(offset >> page_bits));
    }
    return left;
}

uint64_t slab_free_pages(const struct slab *slab)
{
    ASSERT(lock_rank_held(RANK_SHARD));
    const struct size_class *c = &size_classes[slab->cls];
    unsigned pages = (unsigned)(((size_t)c->blocks * c->size + os_page - 1) / os_page);
    uint64_t guards = guard_pages_of(slab->cls);
    if (c->blocks <= 64)
        return pages_left(slab, pages) & ~guards;
    uint64_t set = 0;
    for (unsigned i = 0; i < pages; i++)
        if (!((slab->absent | guards) >> i & 1) && all_free(slab, blocks_in(slab, i, i + 1)))
            set |= (uint64_t)1 << i;
    return set;
}

/* Takes or frees the blocks that have a byte in these pages, run by run; how many that changed. */
static unsigned change(struct slab *slab, uint64_t pages, bool take)
{
    unsigned count = 0;
    while (pages != 0) {
        unsigned first = lowest_bit(pages);
        uint64_t rest = ~(pages >> first);
        unsigned end = rest == 0 ? 64 : first + lowest_bit(rest);
        struct block_range s = blocks_in(slab, first, end);
        for (unsigned i = s.first / 64; i * 64 < s.end; i++) {
            uint64_t usable = guard_word(slab->cls, i);
            uint64_t mask = range_mask(s, i) & usable;
            uint64_t word = take ? slab->words[i] & ~mask : slab->words[i] | mask;
            count += count_bits(word ^ slab->words[i]);
            slab->words[i] = word;
            uint64_t bit = (uint64_t)1 << i;
            slab->summary = (word & usable) != 0 ? slab->summary | bit : slab->summary & ~bit;
        }
        pages &= ~low_bits(end);
    }
    return count;
}

/* ---- their way back ---- */

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
    ASSERT((pages & ~slab_free_pages(slab)) == 0);
    unsigned claimed = change(slab, pages, true);
    ASSERT(claimed <= slab->free);
    store_relaxed(&slab->free, (uint16_t)(slab->free - claimed));
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
        unsigned freed = change(slab, leaving.of[i].pages, false);
        ASSERT(slab->free + freed <= slab->places);
        store_relaxed(&slab->free, (uint16_t)(slab->free + freed));
        if (!was_full) {
            partial_frees(shard, slab->cls, freed);
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
            }
            if (leaving.run_count > RUNS_MOST - RUNS_OF_SLAB)
                purged += leaving_purge();
        }
    }
    purged = (purged + leaving_purge()) * os_page;
    add_relaxed(&counters.pages.purged, purged);
    return purged;
}

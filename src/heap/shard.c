/* take:  lowest partial slab -> a neighbour's partial slab -> a new slab from a superslab
 * put:   slab named by the map -> its shard's lock (kept over a run of the same shard) -> bits
 *        -> a slab all free leaves the shard and, after the lock, goes back to its superslab */
#include "heap/shard.h"

#include "back/huge_pages.h"
#include "back/meta.h"
#include "back/slices.h"
#include "base/atomic.h"
#include "base/counters.h"
#include "heap/gather.h"
#include "heap/slab.h"
#include "os/lock.h"
#include "os/os.h"

struct shard {
    struct lock lock;
    unsigned threads;               /* atomic */
    struct lowest partial[CLASSES]; /* slabs with free and taken blocks; lock: shard */
    struct list sparse;             /* slabs whose pages may be free, newest first; lock: shard */
} __attribute__((aligned(CACHE_LINE)));

static struct shard shards[SHARDS_MOST] = {[0 ... SHARDS_MOST - 1] = {.lock = LOCK(SHARD)}};
static unsigned shard_count = 1;         /* constant after start */
static size_t sparse_count;              /* slabs in the shards' sparse lists; atomic */
static size_t joined;                    /* threads, of all shards; atomic */
static unsigned join_most = SHARDS_MOST; /* atomic */

void shards_start(unsigned cpus)
{
    ASSERT(cpus >= 1);
    shard_count = cpus < SHARDS_MOST ? cpus : SHARDS_MOST;
    for (unsigned i = 0; i < shard_count; i++)
        list_init(&shards[i].sparse);
}

unsigned shard_join(void)
{
    unsigned best = 0;
    for (unsigned i = 1; i < shard_count && i < load_relaxed(&join_most); i++)
        if (load_relaxed(&shards[i].threads) < load_relaxed(&shards[best].threads))
            best = i;
    add_relaxed(&shards[best].threads, 1);
    add_relaxed(&joined, 1);
    return best;
}

void shard_leave(unsigned index)
{
    ASSERT(load_relaxed(&shards[index].threads) > 0 && load_relaxed(&joined) > 0);
    sub_relaxed(&shards[index].threads, 1);
    sub_relaxed(&joined, 1);
}

static struct slab *lowest_partial(struct shard *shard, unsigned cls)
{
    struct low_node *root = load_relaxed(&shard->partial[cls].root);
    return (struct slab *)root;
}

/* Takes the slab out of its shard's sparse ones. */
static void slab_dense(struct slab *slab)
{
    ASSERT(lock_held(&shards[load_relaxed(&slab->shard)].lock));
    if (list_empty(&slab->sparse))
        return;
    list_remove(&slab->sparse);
    sub_relaxed(&sparse_count, 1);
}

/* Brings a slab that a neighbour has begun into this shard. A
 * neighbour that is busy is passed over, so no order of locks is needed. */
static struct slab *slab_from_neighbour(unsigned to, unsigned cls)
{
    ASSERT(lock_held(&shards[to].lock));
    for (unsigned i = 1; i < shard_count; i++) {
        unsigned from = (to + i) % shard_count;
        if (lowest_partial(&shards[from], cls) == NULL || !lock_try(&shards[from].lock))
            continue;
        struct slab *slab = lowest_partial(&shards[from], cls);
        if (slab != NULL) {
            low_remove(&shards[from].partial[cls], &slab->node);
            slab_dense(slab);
            store_relaxed(&slab->shard, (uint16_t)to);
            low_add(&shards[to].partial[cls], &slab->node);
        }
        lock_release(&shards[from].lock);
        if (slab != NULL)
            return slab;
    }
    return NULL;
}

/* A slab's blocks begin in its first slice: others it has for one block alone. A block that has
 * whole slices for itself is in no program's hands yet. */
static void map_enter(const struct slab *slab, void *owner)
{
    unsigned bin = slab->cls < CLASS_SLICES_FIRST ? BIN_FIRST + slab->cls : BIN_WHOLE_FREE;
    map_set(slab->base, 1, owner != NULL ? bin : BIN_FOREIGN, owner);
}

static struct slab *slab_new(unsigned shard, unsigned cls)
{
    ASSERT(lock_held(&shards[shard].lock) && cls < CLASSES);
    const struct size_class *c = &size_classes[cls];
    struct slab *slab = meta_take(slab_bytes(c));
    if (slab == NULL)
        return NULL;
    bool zero;
    struct superslab *home;
    void *base = slices_take(c->slices, 1, &zero, &home);
    if (base == NULL) {
        meta_give(slab, slab_bytes(c));
        return NULL;
    }
    slab_init(slab, cls, base, home);
    slab->zero = zero;
    store_relaxed(&slab->shard, (uint16_t)shard);
    map_enter(slab, slab);
    low_add(&shards[shard].partial[cls], &slab->node);
    return slab;
}

/* Whether it tells anything that pages of the slab are wanted again now. */
static bool soon(const struct slab *slab)
{
    return (ptrdiff_t)(clock_now() - slab->soon_until) <= 0;
}

/* These slabs have left their shard and the map. */
static void slabs_retire(struct low_node *retired)
{
    ASSERT(!lock_rank_held(RANK_SHARD) || fork_holds_locks);
    while (retired != NULL) {
        struct slab *slab = (struct slab *)retired;
        const struct size_class *c = &size_classes[slab->cls];
        ASSERT(slab->free == c->blocks && list_empty(&slab->sparse));
        retired = retired->next;
        if (unlikely(slab->absent != 0) && soon(slab))
            slices_lack(slab->home, slab->base, c->slices, count_bits(slab->absent) * os_page);
        slices_give(slab->home, slab->base, c->slices);
        meta_give(slab, slab_bytes(c));
    }
}

size_t shard_take(unsigned index, unsigned cls, void **end, size_t n)
{
    ASSERT(index < SHARDS_MOST && cls < CLASSES && n >= 1);
    struct shard *shard = &shards[index];
    bool shared = size_classes[cls].size < CACHE_LINE && load_relaxed(&joined) > 1;
    size_t taken = 0;
    lock_take(&shard->lock);
    while (taken < n) {
        struct slab *slab = lowest_partial(shard, cls);
        if (slab == NULL && taken > 0)
            break;
        if (slab == NULL)
            slab = slab_from_neighbour(index, cls);
        if (slab == NULL)
            slab = slab_new(index, cls);
        if (slab == NULL)
            break;
        ASSERT(slab->cls == cls && slab->free >= 1 && load_relaxed(&slab->shard) == index);
        size_t got = shared ? slab_take_lines(slab, end - taken, n - taken) : 0;
        if (got == 0)
            got = slab_take(slab, end - taken, n - taken);
        taken += got;
        if (unlikely(slab->absent != 0)) {
            size_t back = slab_bring_back(slab, end - taken, got) * os_page;
            if (soon(slab))
                count_refault(&counters.pages, back);
        }
        if (slab->free < slab->examined)
            slab->examined = slab->free;
        if (slab->free == 0)
            low_remove(&shard->partial[cls], &slab->node);
    }
    lock_release(&shard->lock);
    return taken;
}

/* Locks the shard of the slab that p is in. The slab's shard can change, and by a program's error
 * the slab itself can be gone, until its lock is held. */
static struct slab *slab_lock(const void *p, struct shard **held)
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

/* Whether a sparse slab is worth a look: since the last one so many blocks were freed as a part of
 * those that are still taken. Near the end each block counts: with nine tenths of blocks of 512
 * bytes free at random, one of 64 more brings a page of 16. */
#define SPARSE_PART 8

static bool worth_a_look(const struct slab *slab)
{
    const struct size_class *c = &size_classes[slab->cls];
    return slab->free >= c->sparse && slab->free > slab->examined &&
           (slab->free - slab->examined) * SPARSE_PART >= c->blocks - slab->free &&
           list_empty(&slab->sparse);
}

/* After blocks of the slab became free: moves it to where it then belongs. */
static void slab_settle(struct shard *shard, struct slab *slab, bool was_full,
                        struct low_node **retired)
{
    ASSERT(lock_held(&shard->lock));
    ASSERT(load_relaxed(&slab->shard) == shard - shards);
    const struct size_class *c = &size_classes[slab->cls];
    struct lowest *partial = &shard->partial[slab->cls];
    ASSERT(slab->free <= c->blocks);
    bool empty = slab->free == c->blocks;
    if (was_full && slab->free > 0 && !empty)
        low_add(partial, &slab->node);
    if (!was_full && empty)
        low_remove(partial, &slab->node);
    if (empty) {
        map_enter(slab, NULL);
        slab_dense(slab);
        slab->node.next = *retired;
        *retired = &slab->node;
    } else if (worth_a_look(slab)) {
        slab->stamp = clock_now();
        list_push(&shard->sparse, &slab->sparse);
        add_relaxed(&sparse_count, 1);
    }
}

/* Frees the run of blocks at the start of `blocks` that are in the slab. */
static size_t slab_put_run(struct shard *shard, struct slab *slab, void *const *blocks, size_t n,
                           struct low_node **retired, enum misuse *what)
{
    ASSERT(lock_held(&shard->lock));
    bool was_full = slab->free == 0;
    size_t put = slab_put(slab, blocks, n, what);
    slab_settle(shard, slab, was_full, retired);
    return put;
}

struct finding shards_put(void **blocks, size_t n)
{
    struct finding found = {MISUSE_NONE, NULL};
    struct shard *held = NULL;
    struct low_node *retired = NULL;
    if (n >= GATHER_LEAST)
        gather(blocks, n);
    for (size_t i = 0; i < n;) {
        struct slab *slab = slab_lock(blocks[i], &held);
        /* A block whose slab is gone was free when the slab left. */
        enum misuse what = MISUSE_FREE;
        if (slab != NULL)
            i += slab_put_run(held, slab, blocks + i, n - i, &retired, &what);
        if (unlikely(what != MISUSE_NONE)) {
            if (found.what == MISUSE_NONE)
                found = (struct finding){what, blocks[i]};
            i++;
        }
    }
    if (held != NULL)
        lock_release(&held->lock);
    slabs_retire(retired);
    return found;
}

/* ---- pages that are free in slabs in use ---- */

/* Worth a call into the kernel: a part of what may be resident. */
#define PURGE_PART 8

static bool worth_purging(const struct slab *slab, uint64_t pages)
{
    const struct size_class *c = &size_classes[slab->cls];
    unsigned all = (unsigned)(c->slices * SLICE / os_page);
    return pages != 0 && count_bits(pages) >= (all - count_bits(slab->absent)) / PURGE_PART;
}

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
    slab_dense(slab);
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
    } of[RUNS_MOST];
    unsigned slabs;
    struct os_run runs[RUNS_MOST];
    unsigned run_count;
    size_t soon_until; /* the clock until which it would tell that they are wanted again */
} leaving;             /* lock: upkeep; empty without it */

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
    ASSERT(lock_held(&shard->lock) && lock_rank_held(RANK_UPKEEP));
    ASSERT(pages != 0 && leaving.slabs < RUNS_MOST);
    unsigned claimed = slab_claim(slab, pages);
    if (claimed > 0 && slab->free == 0)
        low_remove(&shard->partial[slab->cls], &slab->node);
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
    ASSERT(lock_rank_held(RANK_UPKEEP));
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
        struct low_node *retired = NULL;
        struct shard *shard = NULL;
        slab_lock(slab->base, &shard);
        bool was_full = slab->free == 0;
        slab_restore(slab, leaving.of[i].pages);
        slab->absent |= gone;
        slab->soon_until = leaving.soon_until;
        slab->examined = slab->free;
        slab_settle(shard, slab, was_full, &retired);
        lock_release(&shard->lock);
        slabs_retire(retired);
        purged += count_bits(gone);
    }
    leaving.slabs = leaving.run_count = 0;
    return purged;
}

bool shards_sparse(void) { return load_relaxed(&sparse_count) > 0; }

size_t shards_purge(size_t before, size_t soon_until, size_t *most)
{
    ASSERT(lock_rank_held(RANK_UPKEEP));
    ASSERT(leaving.slabs == 0 && leaving.run_count == 0);
    size_t purged = 0;
    leaving.soon_until = soon_until;
    for (unsigned i = 0; i < shard_count; i++) {
        for (; *most > 0; --*most) {
            lock_take(&shards[i].lock);
            struct slab *slab = slab_sparse(&shards[i], before);
            uint64_t pages = slab != NULL ? slab_free_pages(slab) : 0;
            if (slab != NULL && worth_purging(slab, pages))
                slab_leave(&shards[i], slab, pages);
            else
                lock_release(&shards[i].lock);
            if (slab == NULL)
                break;
            if (leaving.run_count > RUNS_MOST - RUNS_OF_SLAB)
                purged += leaving_purge();
        }
    }
    purged = (purged + leaving_purge()) * os_page;
    add_relaxed(&counters.pages.purged, purged);
    return purged;
}

size_t shards_usable(const void *p, const struct slab *slab)
{
    if (slab == NULL || !slab_begins(slab, p))
        return 0;
    const struct size_class *c = &size_classes[slab->cls];
    return c->blocks == 1 ? slab->usable : c->size;
}

bool shards_hand_out(const void *p, size_t n)
{
    struct slab *slab = map_whole_taken(p);
    ASSERT(slab->base == p && n <= size_classes[slab->cls].size);
    bool zero = slab->zero;
    slab->zero = false;
    slab->usable = (uint32_t)round_up(n == 0 ? 1 : n, os_page);
    return zero;
}

enum misuse shards_take_back(const void *p, unsigned *cls)
{
    if ((uintptr_t)p % SLICE != 0)
        return MISUSE_INTERIOR;
    const struct slab *slab = map_whole_freed(p);
    if (slab == NULL)
        return MISUSE_FREE;
    *cls = slab->cls;
    return MISUSE_NONE;
}

bool shards_resize(const void *p, size_t n)
{
    struct shard *held = NULL;
    struct slab *slab = slab_lock(p, &held);
    unsigned cls = class_of_slices(n);
    unsigned now = size_classes[slab->cls].slices;
    unsigned then = size_classes[cls].slices;
    ASSERT(cls < CLASSES && then >= now && size_classes[slab->cls].blocks == 1);
    bool done = then == now || slices_extend(slab->home, slab->base, now, then - now);
    if (done) {
        slab->cls = (uint8_t)cls;
        slab->usable = (uint32_t)round_up(n, os_page);
    }
    lock_release(&held->lock);
    return done;
}

enum misuse shards_check(const void *p)
{
    struct shard *held = NULL;
    struct slab *slab = slab_lock(p, &held);
    enum misuse what = slab == NULL ? MISUSE_FOREIGN : slab_check(slab, p);
    if (held != NULL)
        lock_release(&held->lock);
    return what;
}

unsigned shard_of(const void *p)
{
    struct slab *slab = map_owner(p);
    return slab == NULL ? 0 : load_relaxed(&slab->shard);
}

void shards_limit(unsigned most)
{
    ASSERT(most >= 1);
    store_relaxed(&join_most, most);
}

unsigned shards_made(void) { return shard_count; }
struct low_node **shard_partial(unsigned i, unsigned cls)
{
    ASSERT(lock_all_held());
    return &shards[i].partial[cls].root;
}
unsigned *shard_threads(unsigned index) { return &shards[index].threads; }

/* take:  lowest partial slab -> a neighbour's partial slab -> a new slab from a superslab
 * put:   slab named by the map -> its shard's lock (kept over a run of the same shard) -> bits
 *        -> a slab all free leaves the shard and, after the lock, goes back to its superslab */
#include "heap/shards.h"

#include "back/map.h"
#include "back/meta.h"
#include "back/slices.h"
#include "base/atomic.h"
#include "base/memory.h"
#include "base/policy.h"
#include "heap/hardening.h"
#include "heap/slab.h"
#include "learn/bring_in.h"
#include "learn/compaction.h"
#include "os/os.h"

static size_t joined;                      /* threads, of all shards; atomic */
static unsigned join_most = SHARD_SAMPLED; /* atomic */
static bool sampled_started;               /* atomic */

static unsigned cpus; /* known of */

void shards_start(void)
{
    cpus = os_cpus();
    for (unsigned i = 0; i < SHARDS_MOST; i++)
        shards[i] = &first_shard;
    list_init(&shards[0]->sparse);
}

/* False without memory. */
static SLOW bool shard_make(unsigned index)
{
    struct shard *shard = meta_take_pages(sizeof *shard);
    if (shard == NULL)
        return false;
    lock_set_rank(&shard->lock, RANK_SHARD);
    shard->index = index;
    list_init(&shard->sparse);
    store_release(&shards[index], shard);
    return true;
}

COLD bool shards_start_sampled(void)
{
    if (!load_relaxed(&sampled_started) && shard_make(SHARD_SAMPLED))
        store_release(&sampled_started, true);
    return load_relaxed(&sampled_started);
}

unsigned shard_after(unsigned index)
{
    if (index + 1 < shards_made())
        return index + 1;
    return index < SHARD_SAMPLED && load_acquire(&sampled_started) ? SHARD_SAMPLED : SHARDS_MOST;
}

/* With more threads than this glibc's malloc asks for the CPUs too: no filter of system calls that
 * permits so many can forbid that. */
#define ASKS_ABOVE 8

/* Whether one more shard serves: there is a CPU for it. Threads may have different CPUs, and more
 * later on than at the start. */
static bool more_serve(unsigned made)
{
    if (made >= smaller(load_relaxed(&join_most), SHARD_SAMPLED))
        return false;
    if (made >= cpus && load_relaxed(&joined) > ASKS_ABOVE)
        cpus = os_cpus();
    return made < cpus;
}

unsigned shard_join(void)
{
    unsigned made = shards_made();
    unsigned best = 0;
    for (unsigned i = 1; i < made && i < load_relaxed(&join_most); i++)
        if (load_relaxed(&shards[i]->threads) < load_relaxed(&shards[best]->threads))
            best = i;
    if (load_relaxed(&shards[best]->threads) > 0 && more_serve(made) && shard_make(made)) {
        best = made;
        store_release(&shard_count, made + 1);
    }
    add_relaxed(&shards[best]->threads, 1);
    add_relaxed(&joined, 1);
    return best;
}

void shard_leave(unsigned index)
{
    ASSERT(load_relaxed(&shards[index]->threads) > 0 && load_relaxed(&joined) > 0);
    sub_relaxed(&shards[index]->threads, 1);
    sub_relaxed(&joined, 1);
}

/* Brings a slab that a neighbour has begun into this shard. A
 * neighbour that is busy is passed over, so no order of locks is needed. */
static SLOW struct slab *slab_from_neighbour(unsigned to, unsigned cls)
{
    ASSERT(lock_held(&shards[to]->lock));
    unsigned made = shards_made();
    for (unsigned i = 1; i < made; i++) {
        unsigned from = (to + i) % made;
        if (lowest_partial(shards[from], cls) == NULL || !lock_try(&shards[from]->lock))
            continue;
        struct slab *slab = lowest_partial(shards[from], cls);
        if (slab != NULL) {
            partial_remove(shards[from], slab);
            slab_not_sparse(slab);
            store_relaxed(&slab->shard, (uint16_t)to);
            partial_add(shards[to], slab);
            slab_settle_thin(shards[to], slab);
        }
        lock_release(&shards[from]->lock);
        if (slab != NULL)
            return slab;
    }
    return NULL;
}

/* No canary is left from before, and of the slab before no guard pages but those that this one is
 * to have, too. False if the kernel does not let them go. Where free blocks are zero, slices that
 * are free are zero as well, since only slabs of small blocks have any in a hardened heap. */
static SLOW bool slab_harden(const struct size_class *c, char *base, struct superslab *home,
                             bool zero)
{
    ASSERT(c->slices == 1);
    uint64_t guards = guard_pages_of((unsigned)(c - size_classes));
    if (!slices_unguard(home, base, guards))
        return false;
    if (guards != 0)
        slices_guard_before(home, base);
    if (zero || hardening.zeroes)
        return true;
    uint64_t *last = (uint64_t *)(base + SLICE) - 1; /* slice_before_stands may read it meanwhile */
    for (size_t at = 0; at < SLICE; at += os_page)
        if (!(guards >> at / os_page & 1))
            words_clear(base + at, smaller(os_page, (size_t)((char *)last - base) - at));
    if (!(guards >> (SLICE / os_page - 1) & 1))
        store_relaxed(last, 0);
    return true;
}

/* Not among the partial ones yet. */
static struct slab *slab_new(unsigned shard, unsigned cls, size_t align)
{
    ASSERT(lock_held(&shards[shard]->lock) && cls < CLASSES);
    const struct size_class *c = &size_classes[cls];
    struct slab *slab = meta_take(slab_bytes(c));
    if (slab == NULL)
        return NULL;
    bool zero, fine = c->size <= os_page;
    struct superslab *home;
    uint64_t guards = guard_pages_of(cls);
    void *base = unlikely(guards != 0) ? slices_take_guarded(guards, fine, &zero, &home) : NULL;
    if (base == NULL)
        base = slices_take(c->slices, align, fine, &zero, &home);
    if (base == NULL) {
        meta_give(slab, slab_bytes(c));
        return NULL;
    }
    if (hardened() && !slab_harden(c, base, home, zero)) {
        slices_give(home, base, c->slices);
        meta_give(slab, slab_bytes(c));
        return NULL;
    }
    if (cls < CLASS_SLICES_FIRST)
        add_relaxed(&class_slabs[cls], 1);
    slab_init(slab, cls, base, home);
    slab->zero = zero;
    store_relaxed(&slab->shard, (uint16_t)shard);
    slab_map(slab, slab);
    return slab;
}

/* Of a slab's guard pages those up to the next one behind any of these blocks. */
static SLOW void guard_up_to(struct slab *slab, void *const *blocks, size_t n)
{
    size_t last = 0;
    for (size_t i = 0; i < n; i++)
        last = larger(last, (size_t)((char *)blocks[i] - slab->base));
    unsigned from = (unsigned)((last + size_classes[slab->cls].size - 1) / os_page);
    uint64_t pages = guard_pages_of(slab->cls);
    unsigned next = lowest_bit(pages & ~low_bits(from));
    unsigned end = next + lowest_bit(~(pages >> next));
    slices_guard(slab->home, slab->base, pages & low_bits(end));
}

/* In a hardened heap. */
static SLOW size_t take_any(struct slab *slab, void **end, size_t n)
{
    size_t got = slab_take_any(slab, end, n);
    if (guard_plans != NULL)
        guard_up_to(slab, end - got, got);
    return got;
}

/* Whether the memory of a new slab is brought in with one call. */
static bool slab_is_brought_in(const struct slab *slab)
{
    return slab->zero && size_classes[slab->cls].size <= os_page && !hardened() &&
           slab_comes_whole(load_relaxed(&class_slabs[slab->cls]) - 1);
}

size_t shard_take(unsigned index, unsigned cls, void **end, size_t n)
{
    ASSERT(index < SHARDS_MOST && cls < CLASSES && n >= 1);
    struct shard *shard = shards[index];
    bool shared = size_classes[cls].size < CACHE_LINE && load_relaxed(&joined) > 1;
    size_t taken = 0;
    void *comes = NULL; /* the first of its blocks is the caller's, so the slab can't leave */
    lock_take(&shard->lock);
    while (taken < n) {
        struct slab *slab = lowest_partial(shard, cls);
        if (slab == NULL && taken > 0)
            break;
        if (slab == NULL && index != SHARD_SAMPLED)
            slab = slab_from_neighbour(index, cls);
        bool fresh = slab == NULL;
        if (fresh)
            slab = slab_new(index, cls, 1);
        if (slab == NULL)
            break;
        ASSERT(slab->cls == cls && slab->free >= 1 && load_relaxed(&slab->shard) == index);
        if (fresh && cls < CLASS_SLICES_FIRST && slab_is_brought_in(slab))
            comes = slab->base;
        size_t got = unlikely(hardening.any_place) && size_classes[cls].blocks > 1
                         ? take_any(slab, end - taken, n - taken)
                     : shared ? slab_take_lines(slab, end - taken, n - taken)
                              : 0;
        if (got == 0)
            got = slab_take(slab, end - taken, n - taken);
        taken += got;
        if (unlikely(slab->absent != 0))
            slab_bring_back(shard, slab, end - taken, got);
        if (slab->free < slab->examined)
            slab->examined = slab->free;
        if (!fresh)
            partial_frees(shard, cls, -got);
        if (fresh && slab->free > 0)
            partial_add(shard, slab);
        else if (!fresh && slab->free == 0)
            partial_remove(shard, slab);
        if (unlikely(slab->thin))
            slab_settle_thin(shard, slab);
    }
    if (unlikely(shard->begun[cls].compacts))
        shard_settle_compaction(shard, cls);
    lock_release(&shard->lock);
    if (unlikely(comes != NULL))
        os_bring_in(comes, size_classes[cls].slices * SLICE);
    return taken;
}

SLOW void *shard_take_aligned(unsigned index, unsigned cls, size_t align)
{
    ASSERT(index < SHARDS_MOST && size_classes[cls].blocks == 1);
    struct shard *shard = shards[index];
    void *p[1] = {NULL};
    lock_take(&shard->lock);
    struct slab *slab = slab_new(index, cls, align);
    if (slab != NULL)
        slab_take(slab, p + 1, 1);
    lock_release(&shard->lock);
    return p[0];
}

/* Frees the run of blocks at the start of `blocks` that are in the slab. */
static size_t slab_put_run(struct shard *shard, struct slab *slab, void *const *blocks, size_t n,
                           struct pairing_node **emptied, enum misuse *what)
{
    ASSERT(lock_held(&shard->lock));
    bool was_full = slab->free == 0;
    size_t put = slab_put(slab, blocks, n, what);
    if (!was_full)
        partial_frees(shard, slab->cls, put);
    if (unlikely(slab->thin))
        shard->begun[slab->cls].compacted += put * size_classes[slab->cls].size;
    slab_settle(shard, slab, was_full, emptied);
    return put;
}

struct finding shards_put(void **blocks, size_t n)
{
    struct finding found = {MISUSE_NONE, NULL};
    struct shard *held = NULL;
    struct pairing_node *emptied = NULL;
    unsigned cls = CLASSES;
    for (size_t i = 0; i < n;) {
        struct slab *slab = slab_lock(blocks[i], &held);
        /* A block whose slab is gone was free when the slab left. */
        enum misuse what = MISUSE_FREE;
        if (slab != NULL) {
            cls = slab->cls;
            i += slab_put_run(held, slab, blocks + i, n - i, &emptied, &what);
        }
        if (unlikely(what != MISUSE_NONE)) {
            if (found.what == MISUSE_NONE)
                found = (struct finding){what, blocks[i]};
            i++;
        }
    }
    if (held != NULL) {
        shard_settle_compaction(held, cls);
        lock_release(&held->lock);
    }
    slabs_give_back(emptied);
    return found;
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

/* Free blocks of a class in a shard's begun slabs, about, but for those whose pages went back. */
static size_t places(const struct shard *shard, unsigned cls)
{
    const struct begun *begun = &shard->begun[cls];
    size_t absent = begun->absent * os_page / size_classes[cls].size;
    return begun->free > absent ? begun->free - absent : 0;
}

bool shards_attract(const void *p, unsigned *index)
{
    struct shard *held = NULL;
    const struct slab *slab = slab_lock(p, &held);
    bool attracts = false;
    if (slab != NULL) {
        unsigned cls = slab->cls;
        attracts =
            slab != lowest_partial(held, cls) &&
            compaction_moves(slab->free, slab->places, places(held, cls), held->begun[cls].blocks);
        *index = held->index;
    }
    if (held != NULL)
        lock_release(&held->lock);
    return attracts;
}

struct slabs_free shards_free(void)
{
    struct slabs_free sum = {0, 0};
    for (unsigned i = 0; i < SHARDS_MOST; i = shard_after(i)) {
        sum.bytes += load_relaxed(&shards[i]->free);
        sum.absent += load_relaxed(&shards[i]->absent) * os_page;
    }
    sum.absent = smaller(sum.absent, sum.bytes);
    return sum;
}

size_t shards_gain(void)
{
    size_t sum = 0;
    for (unsigned i = 0; i < shards_made(); i++) { /* no hint names a sampled block */
        lock_take(&shards[i]->lock);
        for (unsigned cls = 0; cls < CLASSES; cls++) {
            const struct size_class *c = &size_classes[cls];
            sum += places(shards[i], cls) / c->blocks * c->blocks * c->size;
        }
        lock_release(&shards[i]->lock);
    }
    return sum;
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

bool shard_compacts(unsigned index, unsigned cls)
{
    return load_relaxed(&shards[index]->begun[cls].compacts);
}

unsigned shards_made(void) { return load_acquire(&shard_count); }
struct pairing_heap *shard_partial(unsigned i, unsigned cls)
{
    ASSERT(lock_all_held());
    return &shards[i]->partial[cls];
}
unsigned *shard_threads(unsigned index) { return &shards[index]->threads; }
size_t shard_bytes(unsigned i) { return i > 0 ? round_up(sizeof(struct shard), os_page) : 0; }
struct begun *shard_begun(unsigned index, unsigned cls) { return &shards[index]->begun[cls]; }

/* ---- what something wrote to free blocks ---- */

static void *tree_written(const struct pairing_heap *slabs, size_t *most)
{
    void *found = NULL;
    struct pairing_node *node = slabs->root;
    for (; node != NULL && found == NULL && *most > 0; node = pairing_after(slabs, node))
        found = slab_written((const struct slab *)node, most);
    return found;
}

SLOW void *shards_written(size_t *most)
{
    void *found = NULL;
    for (unsigned i = 0; i < SHARDS_MOST && found == NULL; i = shard_after(i)) {
        if (!lock_try(&shards[i]->lock))
            continue;
        for (unsigned cls = 0; cls < CLASS_SLICES_FIRST && found == NULL; cls++)
            found = tree_written(&shards[i]->partial[cls], most);
        lock_release(&shards[i]->lock);
    }
    return found;
}

/* ---- blocks of whole slices ---- */

bool whole_hand_out(const void *p, size_t n)
{
    struct slab *slab = map_whole_taken(p);
    ASSERT(slab->base == p && n <= size_classes[slab->cls].size);
    bool zero = slab->zero;
    slab->zero = false;
    store_relaxed(&slab->usable, (uint32_t)round_up(n == 0 ? 1 : n, os_page));
    return zero;
}

enum misuse whole_take_back(const void *p, unsigned *cls)
{
    if ((uintptr_t)p % SLICE != 0)
        return MISUSE_INTERIOR;
    const struct slab *slab = map_whole_freed(p);
    if (slab == NULL)
        return MISUSE_FREE;
    *cls = slab->cls;
    return MISUSE_NONE;
}

bool whole_resize(const void *p, size_t n)
{
    struct shard *held = NULL;
    struct slab *slab = slab_lock(p, &held);
    unsigned cls = class_of_slices(n);
    unsigned now = size_classes[slab->cls].slices;
    unsigned then = size_classes[cls].slices;
    ASSERT(cls < CLASSES && size_classes[slab->cls].blocks == 1);
    /* It may have more than a block of its size needs (large_pop). */
    bool done = then <= now || slices_extend(slab->home, slab->base, now, then - now);
    if (done) {
        if (then > now)
            slab->cls = (uint8_t)cls;
        store_relaxed(&slab->usable, (uint32_t)round_up(n, os_page));
    }
    lock_release(&held->lock);
    return done;
}

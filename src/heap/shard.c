/* take:  lowest partial slab -> a neighbour's partial slab -> a new slab from a superslab
 * put:   slab named by the map -> its shard's lock (kept over a run of the same shard) -> bits
 *        -> a slab all free leaves the shard and, after the lock, goes back to its superslab */
#include "heap/shard.h"

#include "back/meta.h"
#include "back/superslab.h"
#include "base/atomic.h"
#include "heap/slab.h"

struct shard {
    struct lock lock;
    unsigned threads;               /* atomic */
    struct lowest partial[CLASSES]; /* slabs with free and taken blocks; lock: shard */
} __attribute__((aligned(CACHE_LINE)));

static struct shard shards[SHARDS_MOST];
static unsigned shard_count = 1; /* constant after start */

void shards_start(unsigned cpus) { shard_count = cpus < SHARDS_MOST ? cpus : SHARDS_MOST; }

unsigned shard_join(void)
{
    unsigned best = 0;
    for (unsigned i = 1; i < shard_count; i++)
        if (load_relaxed(&shards[i].threads) < load_relaxed(&shards[best].threads))
            best = i;
    add_relaxed(&shards[best].threads, 1);
    return best;
}

void shard_leave(unsigned index) { sub_relaxed(&shards[index].threads, 1); }

static struct slab *lowest_partial(struct shard *shard, unsigned cls)
{
    struct low_node *root = load_relaxed(&shard->partial[cls].root);
    return (struct slab *)root;
}

/* Brings a slab that a neighbour has begun into this shard, whose lock the caller holds. A
 * neighbour that is busy is passed over, so no order of locks is needed. */
static struct slab *slab_from_neighbour(unsigned to, unsigned cls)
{
    for (unsigned i = 1; i < shard_count; i++) {
        unsigned from = (to + i) % shard_count;
        if (lowest_partial(&shards[from], cls) == NULL || !lock_try(&shards[from].lock))
            continue;
        struct slab *slab = lowest_partial(&shards[from], cls);
        if (slab != NULL) {
            low_remove(&shards[from].partial[cls], &slab->node);
            store_relaxed(&slab->shard, (uint16_t)to);
            low_add(&shards[to].partial[cls], &slab->node);
        }
        lock_release(&shards[from].lock);
        if (slab != NULL)
            return slab;
    }
    return NULL;
}

static struct slab *slab_new(unsigned shard, unsigned cls)
{
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
    if (c->blocks == 1)
        map_set(base, 1, BIN_SLICES, slab);
    else
        map_set(base, c->slices, BIN_FIRST + cls, slab);
    low_add(&shards[shard].partial[cls], &slab->node);
    return slab;
}

/* The slab has left its shard and the map. */
static void slab_retire(struct slab *slab)
{
    const struct size_class *c = &size_classes[slab->cls];
    slices_give(slab->home, slab->base, c->slices);
    meta_give(slab, slab_bytes(c));
}

size_t shard_take(unsigned index, unsigned cls, void **end, size_t n)
{
    struct shard *shard = &shards[index];
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
        taken += slab_take(slab, end - taken, n - taken);
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
            return map_bin(p) >= BIN_SLICES ? slab : NULL;
    }
}

/* Frees the run of blocks at the start of `blocks` that are in the slab, and moves the slab to
 * where it then belongs. */
static size_t slab_put_run(struct shard *shard, struct slab *slab, void *const *blocks, size_t n,
                           struct low_node **retired, enum misuse *what)
{
    const struct size_class *c = &size_classes[slab->cls];
    struct lowest *partial = &shard->partial[slab->cls];
    bool was_full = slab->free == 0;
    size_t put = slab_put(slab, blocks, n, what);
    bool empty = slab->free == c->blocks;
    if (was_full && put > 0 && !empty)
        low_add(partial, &slab->node);
    if (!was_full && empty)
        low_remove(partial, &slab->node);
    if (empty) {
        map_set(slab->base, c->slices, BIN_FOREIGN, NULL);
        slab->node.next = *retired;
        *retired = &slab->node;
    }
    return put;
}

struct finding shards_put(void **blocks, size_t n)
{
    struct finding found = {MISUSE_NONE, NULL};
    struct shard *held = NULL;
    struct low_node *retired = NULL;
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
    while (retired != NULL) {
        struct slab *slab = (struct slab *)retired;
        retired = retired->next;
        slab_retire(slab);
    }
    return found;
}

size_t shards_usable(const void *p)
{
    const struct slab *slab = map_owner(p);
    if (slab == NULL || !slab_begins(slab, p))
        return 0;
    const struct size_class *c = &size_classes[slab->cls];
    return c->blocks == 1 ? slab->usable : c->size;
}

enum misuse shards_hand_in(const void *p, unsigned *cls)
{
    struct slab *slab = map_owner(p);
    if (slab == NULL || slab->usable == 0)
        return MISUSE_FREE;
    if (slab->base != p)
        return MISUSE_INTERIOR;
    slab->usable = 0;
    *cls = slab->cls;
    return MISUSE_NONE;
}

bool shards_hand_out(const void *p, size_t n)
{
    struct slab *slab = map_owner(p);
    bool zero = slab->zero;
    slab->zero = false;
    slab->usable = (uint32_t)round_up(n == 0 ? 1 : n, os_page);
    return zero;
}

bool shards_resize(const void *p, size_t n)
{
    struct shard *held = NULL;
    struct slab *slab = slab_lock(p, &held);
    unsigned cls = class_of_slices(n);
    unsigned now = size_classes[slab->cls].slices;
    unsigned then = size_classes[cls].slices;
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

void shards_fork_lock(void)
{
    for (unsigned i = 0; i < shard_count; i++)
        lock_take(&shards[i].lock);
}

void shards_fork_unlock(void)
{
    for (unsigned i = 0; i < shard_count; i++)
        lock_release(&shards[i].lock);
}

#include "front/hardened.h"

#include <string.h>

#include "back/meta.h"
#include "base/atomic.h"
#include "base/memory.h"
#include "base/policy.h"
#include "base/watch.h"
#include "front/stacks.h"
#include "heap/shards.h"
#include "heap/slab.h"
#include "os/os.h"

/* Bytes of blocks of one class that a thread has ready for malloc at most. With 64 KiB random
 * blocks of 16 to 1,024 bytes take 0.89 of the time, and a Python program 1.16 of the memory. */
#define READY_BYTES (16 * KiB)

/* Blocks that it may have ready in any case. Two, so that not each call for a block of 16 KiB or
 * more takes a lock; not measured by itself. */
#define READY_LEAST 2

/* Blocks that it has ready at most. Bounds the metadata of a class at 2.6 KiB a thread, with
 * HELD_MOST; not measured by itself. */
#define READY_MOST 64

/* Blocks of one class that a thread holds back at most, whatever quarantine_bytes says. Bounds the
 * metadata of a class at 2.6 KiB a thread, with READY_MOST; not measured by itself. */
#define HELD_MOST 256

/* A thread's free blocks of a class: those that malloc may take, and those that are held back. */
struct hardened_class {
    uint32_t ready, ready_most;
    uint32_t held, held_most;
    void *slots[]; /* of both, in this order */
};
static_assert(sizeof(struct watch_held) == sizeof(struct hardened_class) &&
                  offsetof(struct watch_held, held) == offsetof(struct hardened_class, held),
              "others read it so");

struct hardened {
    struct chance random;
    struct hardened_class *classes[CLASS_SLICES_FIRST];
};

/* A number below n. */
static unsigned below(uint32_t chance, unsigned n)
{
    return (unsigned)((uint64_t)chance * n >> 32);
}

static_assert(offsetof(struct hardened, classes) == HARDENED_FIRST, "others read it so");

static size_t class_bytes(const struct hardened_class *c)
{
    return sizeof *c + (c->ready_most + c->held_most) * sizeof(void *);
}

static struct hardened_class *class_make(unsigned cls)
{
    size_t size = size_classes[cls].size;
    struct hardened_class sizes = {
        .ready_most = (uint32_t)larger(smaller(READY_BYTES / size, READY_MOST), READY_LEAST),
        .held_most = (uint32_t)smaller(hardening.held / size, HELD_MOST)};
    struct hardened_class *c = meta_take(class_bytes(&sizes));
    if (c != NULL)
        *c = sizes;
    return c;
}

/* Null without memory: the block passes by. */
static SLOW struct hardened_class *class_begin(struct cache *cache, unsigned cls)
{
    ASSERT(lock_held(cache->lock));
    if (cache->hardened == NULL) {
        struct hardened *mine = meta_take(sizeof *mine);
        if (mine != NULL) {
            words_clear(mine, sizeof *mine);
            mine->random.state = random_shared() ^ (uintptr_t)mine;
        }
        store_relaxed(&cache->hardened, mine);
    }
    struct hardened_class *c = NULL;
    if (cache->hardened != NULL && (c = class_make(cls)) != NULL)
        store_relaxed(&cache->hardened->classes[cls], c);
    return c;
}

/* Null where the thread has not begun with the class. */
static struct hardened_class *class_begun(const struct cache *cache, unsigned cls)
{
    struct hardened *mine = cache->hardened;
    return likely(mine != NULL) ? mine->classes[cls] : NULL;
}

static struct hardened_class *class_mine(struct cache *cache, unsigned cls)
{
    struct hardened_class *c = class_begun(cache, cls);
    return likely(c != NULL) ? c : class_begin(cache, cls);
}

void hardened_arm(void *p, unsigned cls, struct finding *found)
{
    if (unlikely(hardening.zeroes) && unlikely(!block_is_zero(p, cls))) {
        *found = (struct finding){MISUSE_WRITTEN, p};
        memset(p, 0, size_classes[cls].size);
    }
    canary_set(p, cls);
}

enum misuse hardened_disarm(void *p, unsigned cls, bool alone)
{
    if (unlikely(!slab_before_stands(p, cls)))
        return MISUSE_UNDERRUN;
    enum misuse what = canary_take(p, cls, alone);
    if (likely(what == MISUSE_NONE) && hardening.zeroes)
        memset(p, 0, class_usable(cls));
    return what;
}

void *hardened_take(struct cache *cache, unsigned cls, struct finding *found)
{
    struct hardened_class *c = class_begun(cache, cls);
    if (unlikely(c == NULL) || unlikely(c->ready == 0))
        return NULL;
    store_own(&c->ready, c->ready - 1);
    void *p = c->slots[c->ready];
    hardened_arm(p, cls, found);
    return p;
}

/* A block more is ready, at a place chosen by chance. The order of the stores matters to the child
 * of a fork: no block is in two places. */
static void add_ready(struct hardened_class *c, void *p, uint32_t chance)
{
    unsigned last = c->ready;
    unsigned at = hardening.shuffles ? below(chance, last + 1) : last;
    store_own(&c->slots[last], c->slots[at]);
    store_own(&c->slots[at], p);
    store_release(&c->ready, last + 1);
}

SLOW void *hardened_take_alone(unsigned shard, unsigned cls, struct finding *found)
{
    void *p = NULL;
    if (shard_take(shard, cls, &p + 1, 1) == 1)
        hardened_arm(p, cls, found);
    return p;
}

SLOW void *hardened_fill(struct cache *cache, unsigned cls, struct finding *found)
{
    struct hardened_class *c = class_mine(cache, cls);
    if (c == NULL)
        return hardened_take_alone(cache->shard, cls, found);
    void *p = hardened_take(cache, cls, found); /* libc may have allocated meanwhile */
    if (p != NULL)
        return p;
    unsigned n = (c->ready_most + 1) / 2;
    void **end = c->slots + n;
    size_t got = shard_take(cache->shard, cls, end, n);
    cache->taken += got * size_classes[cls].size;
    if (got < n)
        words_move(c->slots, end - got, got);
    for (unsigned i = 0; i < got; i++)
        canary_touch(c->slots[i], cls);
    for (unsigned i = 1; hardening.shuffles && i < got; i++) {
        unsigned at = below((uint32_t)random_next(&cache->hardened->random), i + 1);
        void *other = c->slots[at];
        c->slots[at] = c->slots[i];
        c->slots[i] = other;
    }
    store_release(&c->ready, (uint32_t)got);
    return hardened_take(cache, cls, found);
}

/* Back to their slabs, from where nobody may take them for long: so they are looked at before. */
static struct finding put(void **blocks, unsigned n, unsigned cls)
{
    struct finding found = {MISUSE_NONE, NULL};
    for (unsigned i = 0; i < n && hardening.zeroes; i++)
        if (unlikely(!block_is_zero(blocks[i], cls))) {
            found = (struct finding){MISUSE_WRITTEN, blocks[i]};
            words_clear(blocks[i], size_classes[cls].size);
        }
    finding_keep(&found, shards_put(blocks, n));
    return found;
}

/* Half of what is ready goes back: the older half, or any. */
static SLOW struct finding flush(struct cache *cache, unsigned cls, struct hardened_class *c)
{
    ASSERT(lock_held(cache->lock));
    unsigned n = (c->ready + 1) / 2, stay = c->ready - n;
    struct finding found = put(c->slots, n, cls);
    words_move(c->slots, c->slots + n, stay);
    store_release(&c->ready, stay);
    cache_gave(cache, n * size_classes[cls].size);
    return found;
}

static bool is_full(const struct hardened_class *c)
{
    return c->held == c->held_most && c->ready == c->ready_most;
}

/* Held back, if need be in the place of one that then is ready. */
static void hold(struct cache *cache, struct hardened_class *c, void *p)
{
    void **held = c->slots + c->ready_most;
    if (c->held < c->held_most) {
        store_own(&held[c->held], p);
        store_release(&c->held, c->held + 1);
        return;
    }
    void *out = p;
    uint64_t chance = random_next(&cache->hardened->random);
    if (likely(c->held_most > 0)) {
        unsigned at = below((uint32_t)(chance >> 32), c->held_most);
        out = held[at];
        store_own(&held[at], p);
    }
    add_ready(c, out, (uint32_t)chance);
}

bool hardened_push(struct cache *cache, unsigned cls, void *p)
{
    struct hardened_class *c = class_begun(cache, cls);
    if (unlikely(c == NULL) || unlikely(is_full(c)))
        return false;
    hold(cache, c, p);
    return true;
}

SLOW struct finding hardened_give(struct cache *cache, unsigned cls, void *p)
{
    struct hardened_class *c = class_mine(cache, cls);
    if (unlikely(c == NULL))
        return put(&p, 1, cls);
    struct finding found = {MISUSE_NONE, NULL};
    if (is_full(c))
        found = flush(cache, cls, c);
    hold(cache, c, p);
    return found;
}

SLOW struct finding hardened_put_all(struct cache *cache)
{
    ASSERT(lock_held(cache->lock));
    struct finding found = {MISUSE_NONE, NULL};
    for (unsigned cls = 0; cls < CLASS_SLICES_FIRST; cls++) {
        struct hardened_class *c = cache->hardened->classes[cls];
        if (c == NULL)
            continue;
        finding_keep(&found, put(c->slots, c->ready, cls));
        finding_keep(&found, put(c->slots + c->ready_most, c->held, cls));
        cache_gave(cache, (c->ready + c->held) * size_classes[cls].size);
        store_relaxed(&c->ready, 0);
        store_relaxed(&c->held, 0);
    }
    return found;
}

/* Its owner takes and gives blocks of the class without the lock. But each take makes fewer ready.
 * Each give adds one to those held, or is a step of `random`, and only then one more is ready. */
struct at_work {
    uint64_t random;
    uint32_t ready, held;
};

static struct at_work at_work(const struct hardened *its, const struct hardened_class *c)
{
    return (struct at_work){load_acquire(&its->random.state), load_acquire(&c->ready),
                            load_acquire(&c->held)};
}

/* A block that does not hold zeroes may be one that its owner just takes or gives. Its owner makes
 * it no longer ready before the program writes to it, so once those writes are seen, that is too:
 * then the block is still there only if something else wrote. Where a processor may show the stores
 * in another order, nothing is said. */
static SLOW bool is_written(const struct hardened *its, const struct hardened_class *c,
                            struct at_work before, void *const *slot, unsigned cls)
{
    void *p = load_relaxed(slot);
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    if (!STORES_ARE_SEEN_IN_ORDER)
        return false;
    struct at_work now = at_work(its, c);
    return now.random == before.random && now.ready == before.ready && now.held == before.held &&
           load_relaxed(slot) == p && !block_is_zero(p, cls);
}

SLOW void *hardened_written(const struct cache *cache, size_t *most)
{
    ASSERT(lock_held(cache->lock));
    const struct hardened *its = cache->hardened;
    for (unsigned cls = 0; cls < CLASS_SLICES_FIRST && its != NULL; cls++) {
        const struct hardened_class *c = its->classes[cls];
        struct at_work before = c != NULL ? at_work(its, c) : (struct at_work){0, 0, 0};
        for (uint32_t i = 0; i < before.ready + before.held; i++) {
            void *const *slot = &c->slots[i < before.ready ? i : c->ready_most + i - before.ready];
            void *p = load_acquire(slot);
            if (*most < size_classes[cls].size)
                return NULL;
            *most -= size_classes[cls].size;
            if (unlikely(!block_is_zero(p, cls)) && is_written(its, c, before, slot, cls))
                return p;
        }
    }
    return NULL;
}

size_t hardened_count(const struct cache *cache, unsigned cls)
{
    struct hardened *mine = load_relaxed(&cache->hardened);
    const struct hardened_class *c =
        mine != NULL && cls < CLASS_SLICES_FIRST ? load_relaxed(&mine->classes[cls]) : NULL;
    return c != NULL ? load_relaxed(&c->ready) + load_relaxed(&c->held) : 0;
}

void hardened_fork_child(struct cache *mine, uint64_t chance)
{
    random_fork_child(chance);
    if (mine != NULL && mine->hardened != NULL)
        random_stir(&mine->hardened->random, chance);
}

size_t hardened_metadata(const struct cache *cache)
{
    const struct hardened *mine = load_relaxed(&cache->hardened);
    size_t bytes = mine != NULL ? meta_size(sizeof *mine) : 0;
    for (unsigned cls = 0; mine != NULL && cls < CLASS_SLICES_FIRST; cls++) {
        const struct hardened_class *c = load_relaxed(&mine->classes[cls]);
        bytes += c != NULL ? meta_size(class_bytes(c)) : 0;
    }
    return bytes;
}

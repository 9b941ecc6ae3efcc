#include "front/cache.h"

#include "back/meta.h"
#include "base/atomic.h"
#include "base/watch.h"
#include "heap/classes.h"
#include "heap/shards.h"
#include "os/lock.h"
#include "os/os.h"

/* Its stacks are empty, and full. Threads that share it move a top that means nothing. */
#define CLOSED_BIN                         \
    {                                      \
        (void *)WINDOW_BASE, NULL, NULL, 0 \
    }
#define CLOSED_AHEAD              \
    {                             \
        (void *)WINDOW_BASE, NULL \
    }
#define CLOSED_CACHE                                                            \
    {                                                                           \
        .bins = {[0 ... BINS - 1] = CLOSED_BIN},                                \
        .ahead = {[0 ... AHEAD_CLASSES - 1] = CLOSED_AHEAD}, .whole = NO_WHOLE, \
    }

struct cache cache_none = CLOSED_CACHE;
struct cache cache_gone = CLOSED_CACHE;

__thread struct cache *cache_mine = &cache_none;

/* ---- all caches ---- */

/* A lock of its own line, since all threads take theirs at once. */
struct cache_lock {
    struct lock lock;
} __attribute__((aligned(CACHE_LINE)));

/* As many as leave the fork's page room for the other locks. */
#define FIRST_LOCKS 48

static struct {
    struct lock lock;
    unsigned generation;      /* forks between the first process and this one, and 1; lock: this */
    unsigned locks_left;      /* lock: this */
    struct cache *survivor;   /* the forking thread's, until the registry says so; lock: this */
    size_t living;            /* atomic */
    struct cache *every;      /* atomic; grows at the front */
    struct cache *unused;     /* a stack of those that are nobody's; lock: this */
    struct cache_lock *locks; /* not given out yet; lock: this */
    struct cache_lock first[FIRST_LOCKS];
} registry FORK_PAGE = {.lock = LOCK(REGISTRY), .generation = 1};

bool registry_has_orphans FORK_PAGE;

/* Of threads without a cache: before their first call, after their end, or if there is no memory.
 */
struct lock cacheless_lock FORK_PAGE = LOCK(CACHELESS);

size_t caches_living(void) { return load_relaxed(&registry.living); }
size_t *caches_count(void) { return &registry.living; }
struct cache *caches_every(void) { return load_acquire(&registry.every); }

enum ownership registry_ownership(const struct cache *cache)
{
    unsigned generation = load_relaxed(&cache->generation);
    if (generation == 0)
        return CACHE_UNUSED;
    return generation == load_relaxed(&registry.generation) ||
                   cache == load_relaxed(&registry.survivor)
               ? CACHE_LIVING
               : CACHE_ORPHAN;
}

static void own(struct cache *cache)
{
    ASSERT(lock_held(&registry.lock));
    store_relaxed(&cache->generation, registry.generation);
    store_relaxed(&cache->left, false);
    cache->shard = shard_join();
    add_relaxed(&registry.living, 1);
}

struct cache *registry_take(void)
{
    ASSERT(lock_held(&cacheless_lock));
    lock_take(&registry.lock);
    struct cache *cache = registry.unused;
    if (cache != NULL) {
        registry.unused = cache->unused;
        own(cache);
    }
    lock_release(&registry.lock);
    return cache;
}

static struct lock *cache_lock_take(void)
{
    ASSERT(lock_held(&registry.lock));
    if (registry.locks == NULL) {
        registry.locks = registry.first;
        registry.locks_left = FIRST_LOCKS;
    }
    if (registry.locks_left == 0) {
        struct cache_lock *more = meta_take_pages(os_page);
        if (more == NULL)
            return NULL;
        registry.locks = more;
        registry.locks_left = (unsigned)(os_page / sizeof *more);
    }
    struct lock *lock = &registry.locks++->lock;
    registry.locks_left--;
    lock_set_rank(lock, RANK_CACHE);
    return lock;
}

bool registry_enter(struct cache *cache)
{
    ASSERT(lock_held(&cacheless_lock));
    lock_take(&registry.lock);
    cache->lock = cache_lock_take();
    if (cache->lock != NULL) {
        if (fork_holds_locks()) /* caches_fork_unlock_parent lets it go */
            lock_begin(cache->lock);
        own(cache);
        cache->every = registry.every;
        store_release(&registry.every, cache);
    }
    lock_release(&registry.lock);
    return cache->lock != NULL;
}

bool registry_exchange(struct cache *cache, struct cache *from, struct cache *to)
{
    ASSERT(lock_held(cache->lock));
    struct cache **mine = cache->mine;
    return mine != NULL && os_readable(mine) &&
           __atomic_compare_exchange_n(mine, &from, to, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

void registry_leave(struct cache *cache)
{
    ASSERT(lock_held(&cacheless_lock));
    lock_take(&registry.lock);
    if (registry_ownership(cache) == CACHE_LIVING)
        sub_relaxed(&registry.living, 1);
    shard_leave(cache->shard);
    store_relaxed(&cache->generation, 0);
    cache->unused = registry.unused;
    registry.unused = cache;
    if (registry.survivor == cache)
        store_relaxed(&registry.survivor, NULL);
    lock_release(&registry.lock);
}

/* An adopted one counts as living until it leaves: a fork meanwhile makes it an orphan again. */
struct cache *registry_adopt(void)
{
    ASSERT(lock_held(&cacheless_lock));
    lock_take(&registry.lock);
    if (registry.survivor != NULL) {
        store_relaxed(&registry.survivor->generation, registry.generation);
        store_relaxed(&registry.survivor, NULL);
    }
    struct cache *orphan = registry.every;
    while (orphan != NULL && registry_ownership(orphan) != CACHE_ORPHAN)
        orphan = orphan->every;
    if (orphan != NULL) {
        store_relaxed(&orphan->generation, registry.generation);
        add_relaxed(&registry.living, 1);
    } else {
        store_relaxed(&registry_has_orphans, false);
    }
    lock_release(&registry.lock);
    return orphan;
}

void caches_fork_lock(void)
{
    lock_take(&cacheless_lock);
    lock_take(&registry.lock);
    for (struct cache *cache = registry.every; cache != NULL; cache = cache->every)
        lock_take(cache->lock);
}

void caches_fork_unlock_parent(void)
{
    for (struct cache *cache = registry.every; cache != NULL; cache = cache->every)
        lock_release(cache->lock);
    lock_release(&registry.lock);
    lock_release(&cacheless_lock);
}

void caches_fork_unlock_child(struct cache *mine)
{
    ASSERT(lock_held(&registry.lock));
    registry.generation++;
    registry.survivor = mine;
    registry.living = mine != NULL;
    registry_has_orphans = true;
    caches_fork_unlock_parent();
}

/* Fields of bits, which have no offset of their own. */
static_assert(ROOM_MOST == 0x3fff, "the bits of room");

const struct watch_caches watch_caches = {
    .bytes = sizeof watch_caches,
    .size = sizeof(struct cache),
    .every_at = offsetof(struct cache, every),
    .generation_at = offsetof(struct cache, generation),
    .stacks = STACKS,
    .bins_at = BIN_FIRST * sizeof(struct bin),
    .bin_bytes = sizeof(struct bin),
    .top_at = offsetof(struct bin, top),
    .cold_at = offsetof(struct cache, cold),
    .cold_bytes = sizeof(struct cold_bin),
    .base_at = offsetof(struct cold_bin, base),
    .room_at = offsetof(struct cold_bin, base) + sizeof(void *),
    .room_mask = ROOM_MOST,
    .closes_at = offsetof(struct bin, inverse),
    .mine_at = offsetof(struct cache, mine),
    .aheads = AHEAD_CLASSES,
    .ahead_at = offsetof(struct cache, ahead),
    .ahead_bytes = sizeof(struct ahead),
    .ahead_most = AHEAD_MOST,
    .held_at = offsetof(struct cache, hardened),
    .held_first = HARDENED_FIRST,
    .held_classes = CLASS_SLICES_FIRST,
    .every = &registry.every,
    .generation = &registry.generation,
};

/* ---- closing the fast paths ---- */

uint32_t closed_from_outside;

static unsigned closings_of(const struct cache *cache)
{
    unsigned ordered = load_relaxed(&closed_from_outside) != 0 ? CLOSED_ORDERED : 0;
    return load_relaxed(&closings) | ordered | load_relaxed(&cache->closings);
}

SLOW void cache_settle(struct cache *cache, bool all)
{
    unsigned reasons;
    do {
        reasons = closings_of(cache);
        bool whole = (reasons & CLOSE_WHOLE) == 0;
        store_relaxed(&cache->whole, whole ? BIN_WHOLE * BIN_BYTES : NO_WHOLE);
        for (unsigned first = 0; first < STACKS; first += 64) {
            uint64_t left = low_bits(smaller(STACKS - first, 64));
            for (left &= all ? left : cache->begun[first / 64]; left != 0; left &= left - 1) {
                unsigned stack = first + lowest_bit(left);
                bool begun = stack_begun(&cache->cold[stack]);
                unsigned closes = begun ? CLOSE_GIVING : CLOSE_GIVING & ~(unsigned)CLOSE_BEGUN;
                store_relaxed(&cache->bins[BIN_FIRST + stack].inverse,
                              (reasons & closes) != 0 ? 0 : class_inverses[stack_class(stack)]);
            }
        }
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
    } while (unlikely(closings_of(cache) != reasons)); /* another process changed them */
}

void cache_close(struct cache *cache, enum closing reason, bool on)
{
    ASSERT(lock_held(cache->lock));
    unsigned now = cache->closings;
    store_relaxed(&cache->closings, on ? now | reason : now & ~(unsigned)reason);
    cache_settle(cache, false);
}

static void caches_settle(void)
{
    for (struct cache *cache = caches_every(); cache != NULL; cache = cache->every) {
        lock_take(cache->lock);
        cache_settle(cache, true);
        lock_release(cache->lock);
    }
}

/* An owner on some processors may see only later that its cache is gone. Until then it goes on with
 * stacks that nobody else touches: tests/models/closer.pml. */
static void caches_take_away(void)
{
    for (struct cache *cache = caches_every(); cache != NULL; cache = cache->every) {
        lock_take(cache->lock);
        if (registry_ownership(cache) == CACHE_LIVING)
            registry_exchange(cache, cache, &cache_none);
        lock_release(cache->lock);
    }
}

enum taking { OPEN, AHEAD, CLOSED };

static enum taking taking_for(unsigned reasons)
{
    if ((reasons & CLOSE_AHEAD) != 0)
        return CLOSED;
    return (reasons & CLOSE_TAKING) != 0 ? AHEAD : OPEN;
}

static bool taking_settle(unsigned wanted)
{
    static const struct ahead_offsets ahead = {
        .at = offsetof(struct cache, ahead), .step = sizeof(struct ahead), .count = AHEAD_CLASSES};
    static const struct ahead_offsets none = {0};
    enum taking now = taking_for(wanted);
    if (now == taking_for(load_relaxed(&closings)))
        return true;
    return classes_close(now == OPEN ? NULL : now == AHEAD ? &ahead : &none);
}

COLD bool heap_close(enum closing reason, bool on)
{
    ASSERT(reason == CLOSED_CHECKED || lock_held(&cacheless_lock));
    unsigned now = load_relaxed(&closings);
    if (!taking_settle(on ? now | reason : now & ~(unsigned)reason))
        return false;
    if (on)
        __atomic_fetch_or(&closings, reason, __ATOMIC_SEQ_CST);
    else
        __atomic_fetch_and(&closings, ~(unsigned)reason, __ATOMIC_SEQ_CST);
    if ((reason & CLOSE_GIVING) != 0)
        caches_settle();
    if ((reason & CLOSE_CACHES) != 0 && on)
        caches_take_away(); /* opened, each owner finds its cache again at its next call */
    return true;
}

COLD void heap_open_ordered(void)
{
    store_relaxed(&closed_from_outside, 0);
    for (struct cache *cache = caches_every(); cache != NULL; cache = cache->every) {
        if (!lock_enter(cache->lock)) {
            store_relaxed(&closed_from_outside, 1); /* a fork has everything: later */
            return;
        }
        cache_settle(cache, true);
        lock_release(cache->lock);
    }
}

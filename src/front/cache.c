#include "front/cache.h"

#include <string.h>

#include "back/meta.h"
#include "base/atomic.h"
#include "base/counters.h"
#include "base/policy.h"
#include "front/arrays.h"
#include "front/closer.h"
#include "front/crowd.h"
#include "front/deferred.h"
#include "front/fit.h"
#include "front/pocket.h"
#include "front/roster.h"
#include "front/stack.h"
#include "front/theft.h"
#include "heap/shards.h"
#include "heap/transfer.h"
#include "os/lock.h"
#include "os/os.h"

/* Its stacks are empty, and full. Threads that share it move a top that means nothing. */
#define CLOSED_BIN                         \
    {                                      \
        (void *)WINDOW_BASE, NULL, NULL, 0 \
    }
#define CLOSED_CACHE                              \
    {                                             \
        .bins = { [0 ... BINS - 1] = CLOSED_BIN } \
    }

struct cache cache_none = CLOSED_CACHE;
struct cache cache_gone = CLOSED_CACHE;

__thread struct cache *cache_mine = &cache_none;

/* ---- the door ---- */

/* The first class from `cls` on whose stack is begun, or CLASSES. */
static unsigned begun_from(const struct cache *cache, unsigned cls)
{
    for (unsigned i = cls / 64; i < sizeof cache->begun / sizeof *cache->begun; i++) {
        uint64_t left = cache->begun[i];
        if (i == cls / 64)
            left &= ~low_bits(cls % 64);
        if (left != 0)
            return i * 64 + lowest_bit(left);
    }
    return CLASSES;
}

static void bin_close(struct bin *bin)
{
    store_relaxed(&bin->topmost, stack_mark());
    store_relaxed(&bin->top, NULL);
    store_relaxed(&bin->limit, NULL);
}

/* No stack is begun any more. */
static void cache_reset(struct cache *cache)
{
    cache->capacity_bytes = cache->outflow = 0;
    cache->asleep = cache->rests = cache->cut = false;
    arrays_reset(cache);
    for (unsigned cls = begun_from(cache, 0); cls < CLASSES; cls = begun_from(cache, cls + 1)) {
        bin_close(&cache->bins[BIN_FIRST + cls]);
        cache->depots[cls] = (struct depot){0};
    }
    memset(cache->begun, 0, sizeof cache->begun);
}

/* What a new thread frees first was mostly dealt out to it by another that keeps the blocks beside:
 * were it to allocate them anew, each write to them would take the cache line from the other. */
#define WARY_FREES 8
#define WARY_MOST 32 /* larger blocks share a line with one other at most */

static void stack_begin(struct cache *cache, unsigned cls)
{
    ASSERT(lock_held(cache->door));
    ASSERT(!stack_begun(&cache->depots[cls]));
    struct bin *bin = &cache->bins[BIN_FIRST + cls];
    struct depot *depot = &cache->depots[cls];
    void **array = array_first(cache, cls);
    *array = stack_mark();
    depot->base = array;
    stack_set_top(bin, array);
    cache->begun[cls / 64] |= (uint64_t)1 << cls % 64;
    depot->room = size_classes[cls].first;
    depot->wary = size_classes[cls].size <= WARY_MOST && caches_living() > 1 ? WARY_FREES : 0;
    stack_start_capacity(cache, cls);
}

/* The owner is back. While a thief put its cache to sleep it may have been in the middle of a free:
 * that block lies alone on top of a floor. Its slot may have been purged since, so it is read from
 * beside the top. */
static void cache_wake(struct cache *cache)
{
    ASSERT(lock_held(cache->door));
    ASSERT(cache->asleep);
    void *late[CLASSES];
    for (unsigned cls = 0; cls < CLASSES; cls++) {
        const struct bin *bin = &cache->bins[BIN_FIRST + cls];
        late[cls] = stack_used(bin, &cache->depots[cls]) > 0 ? bin->topmost : NULL;
    }
    cache_reset(cache);
    roster_wakes();
    for (unsigned cls = 0; cls < CLASSES; cls++) {
        if (late[cls] == NULL)
            continue;
        stack_begin(cache, cls);
        cache->depots[cls].wary = 0;
        if (!cache_push_any(cache, cls, late[cls]))
            shards_put(&late[cls], 1);
    }
}

/* False where a fork holds the door for long. */
static bool cache_enter(struct cache *cache)
{
    if (unlikely(!lock_enter(cache->door)))
        return false;
    if (unlikely(cache->asleep))
        cache_wake(cache);
    return true;
}

/* Begins the stack if it is not; moves what lies above a thief's cut to the bottom. */
static void stack_settle(struct cache *cache, unsigned cls)
{
    ASSERT(lock_held(cache->door));
    struct bin *bin = &cache->bins[BIN_FIRST + cls];
    struct depot *depot = &cache->depots[cls];
    if (unlikely(!stack_begun(depot)))
        stack_begin(cache, cls);
    size_t used = stack_used(bin, depot);
    ASSERT(depot->floor + used <= depot->room && depot->capacity <= depot->room);
    if (depot->floor != 0) {
        memmove(depot->base + 1, stack_floor(depot) + 1, used * sizeof(void *));
        depot->floor = 0;
    }
    depot->doubted = false;
    stack_set_top(bin, depot->base + used);
}

/* The allocation clock is everybody's, so threads advance it in steps of so many bytes. */
#define CLOCK_STEP (32 * KiB)

static void cache_gave(struct cache *cache, size_t bytes)
{
    ASSERT(lock_held(cache->door));
    cache->taken -= bytes;
    cache->unclocked += bytes;
    if (cache->unclocked >= CLOCK_STEP) {
        clock_advance(cache->unclocked);
        cache->unclocked = 0;
    }
}

/* Frees the n lowest of a stack: those that were pushed first. */
static struct finding stack_put_oldest(struct cache *cache, unsigned cls, size_t n,
                                       bool by_transfer)
{
    ASSERT(lock_held(cache->door));
    struct bin *bin = &cache->bins[BIN_FIRST + cls];
    struct depot *depot = &cache->depots[cls];
    void **oldest = depot->base + 1;
    size_t used = stack_used(bin, depot);
    ASSERT(n <= used && used <= depot->room && depot->floor == 0);
    size_t sent = by_transfer ? transfer_put(cls, oldest, n) : 0;
    struct finding found = shards_put(oldest + sent, n - sent);
    memmove(oldest, oldest + n, (used - n) * sizeof(void *));
    stack_set_top(bin, depot->base + used - n);
    cache_gave(cache, n * size_classes[cls].size);
    return found;
}

/* Frees all that a cache holds, and makes it new; the first wrong block found. */
static struct finding cache_drain(struct cache *cache)
{
    ASSERT(lock_held(cache->door));
    struct finding found = {MISUSE_NONE, NULL};
    if (cache->asleep)
        cache_wake(cache);
    pocket_empty(cache);
    for (unsigned cls = begun_from(cache, 0); cls < CLASSES; cls = begun_from(cache, cls + 1)) {
        stack_settle(cache, cls);
        size_t used = stack_used(&cache->bins[BIN_FIRST + cls], &cache->depots[cls]);
        if (used == 0)
            continue;
        struct finding one = stack_put_oldest(cache, cls, used, false);
        if (found.what == MISUSE_NONE)
            found = one;
    }
    cache_reset(cache);
    return found;
}

/* Gives up a cache whose thread is gone. */
static struct finding cache_end(struct cache *cache)
{
    ASSERT(lock_held(&cacheless_lock));
    lock_take(cache->door);
    store_relaxed(&cache->mine, NULL);
    struct finding found = cache_drain(cache);
    lock_release(cache->door);
    roster_leave(cache);
    return found;
}

/* Frees what one thread held that a fork left behind. A block that was just on its way to or from
 * the program is in the stack and free at once; it is passed over. */
static COLD void orphan_take_in(void)
{
    if (!lock_enter(&cacheless_lock))
        return;
    struct cache *orphan = roster_adopt();
    if (orphan != NULL)
        cache_end(orphan);
    lock_release(&cacheless_lock);
}

/* ---- refill and flush ---- */

static COLD void cache_returns(struct cache *cache)
{
    cache->rests = false;
    cache->stays_until = os_milliseconds() + policy.scavenge_ms;
}

/* A batch for an empty stack, of which the last is returned. */
static void *stack_fill(struct cache *cache, unsigned cls)
{
    ASSERT(lock_held(cache->door));
    struct bin *bin = &cache->bins[BIN_FIRST + cls];
    struct depot *depot = &cache->depots[cls];
    store_relaxed(&cache->refills, cache->refills + 1);
    bool shared = caches_living() > 1;
    stack_fit(cache, cls, (struct capacity_seen){.event = STACK_EMPTY, .shared = shared});

    /* Half, so that as many frees find room. */
    size_t n = (depot->capacity + 1) / 2;
    n += n == 0;
    ASSERT(n <= depot->room && stack_used(bin, depot) == 0);
    void **end = depot->base + 1 + n;
    size_t got = transfer_take(cls, end, n);
    if (got == 0)
        got = shard_take(cache->shard, cls, end, n);
    if (got == 0)
        return NULL;
    capacity_moved(&depot->ways, got, false);
    size_t bytes = got * size_classes[cls].size;
    cache->taken += bytes;
    cache->gives = 0;
    if (unlikely(cache->rests))
        cache_returns(cache);
    cache->outflow -= bytes < cache->outflow ? bytes : cache->outflow;
    stack_open(bin, depot);
    if (got < n)
        memmove(depot->base + 1, end - got, got * sizeof(void *));
    void *p = depot->base[got];
    stack_set_top(bin, depot->base + got - 1);
    return p;
}

SLOW void *cache_refill(struct cache *cache, unsigned cls)
{
    ASSERT(cls < CLASSES);
    struct bin *bin = &cache->bins[BIN_FIRST + cls];
    if (unlikely(load_relaxed(&roster_has_orphans)))
        orphan_take_in();
    if (unlikely(!cache_enter(cache)))
        return not_entered();
    stack_settle(cache, cls);
    void *p = bin->topmost;
    if (unlikely(p != stack_mark())) /* a thief came and took nothing */
        stack_set_top(bin, bin->top - 1);
    else
        p = stack_fill(cache, cls);
    lock_release(cache->door);
    return p;
}

/* Frees the older part of a full stack. */
static struct finding stack_flush(struct cache *cache, unsigned cls)
{
    ASSERT(lock_held(cache->door));
    struct depot *depot = &cache->depots[cls];
    struct bin *bin = &cache->bins[BIN_FIRST + cls];
    store_relaxed(&cache->flushes, cache->flushes + 1);
    size_t used = stack_used(bin, depot);
    /* It gives back twice over what its stacks could hold: it will not soon want that again. */
    bool drains = cache->outflow > 2 * cache->capacity_bytes;
    /* Alone, a thread finds its own blocks sooner, and in order, by their bits. */
    bool shared = caches_living() > 1;
    bool foreign = shared && used > 0 && shard_of(depot->base[1]) != cache->shard;
    const struct capacity_seen seen = {
        .event = STACK_FULL, .shared = shared, .foreign = foreign, .drains = drains};
    stack_fit(cache, cls, seen);
    size_t keep = depot->capacity / 2;
    if (used <= keep)
        return (struct finding){MISUSE_NONE, NULL};
    capacity_moved(&depot->ways, used - keep, foreign);
    cache->outflow += (used - keep) * size_classes[cls].size;
    bool passes = foreign || (shared && depot->ways.streak > 2);
    return stack_put_oldest(cache, cls, used - keep, passes);
}

/* ---- many threads: see crowd.h ---- */

/* Frees what lies in the stacks beyond so much as new ones may hold. */
static COLD struct finding cache_cut(struct cache *cache)
{
    ASSERT(lock_held(cache->door));
    struct finding found = {MISUSE_NONE, NULL};
    store_relaxed(&cache->cut, false);
    for (unsigned cls = begun_from(cache, 0); cls < CLASSES; cls = begun_from(cache, cls + 1)) {
        struct depot *depot = &cache->depots[cls];
        stack_settle(cache, cls);
        size_t used = stack_used(&cache->bins[BIN_FIRST + cls], depot);
        size_t most = stack_first(cls);
        struct finding one = {MISUSE_NONE, NULL};
        if (used > most && most < depot->capacity)
            one = stack_put_oldest(cache, cls, used - most, false);
        stack_cut(cache, cls);
        if (found.what == MISUSE_NONE)
            found = one;
    }
    return found;
}

/* A block kept would keep its page from going back, so none is until the next refill. */
static COLD struct finding cache_rest(struct cache *cache)
{
    ASSERT(lock_held(cache->door));
    struct finding found = {MISUSE_NONE, NULL};
    for (unsigned cls = begun_from(cache, 0); cls < CLASSES; cls = begun_from(cache, cls + 1)) {
        struct bin *bin = &cache->bins[BIN_FIRST + cls];
        stack_settle(cache, cls);
        struct finding one =
            stack_put_oldest(cache, cls, stack_used(bin, &cache->depots[cls]), false);
        if (found.what == MISUSE_NONE)
            found = one;
        store_relaxed(&bin->limit, NULL);
    }
    cache->rests = true;
    return found;
}

/* Past the stack; `found` is what came to light before. */
static struct finding give_one(struct cache *cache, unsigned cls, void *p, struct finding found)
{
    ASSERT(lock_held(cache->door));
    struct depot *depot = &cache->depots[cls];
    depot->wary -= depot->wary > 0;
    struct finding one = shards_put(&p, 1);
    cache_gave(cache, size_classes[cls].size);
    return one.what != MISUSE_NONE ? one : found;
}

SLOW struct finding cache_give(struct cache *cache, unsigned cls, void *p)
{
    ASSERT(cls < CLASSES);
    struct bin *bin = &cache->bins[BIN_FIRST + cls];
    struct depot *depot = &cache->depots[cls];
    if (load_relaxed(&bin->topmost) == p)
        return (struct finding){MISUSE_FREE, p};
    struct finding found = {MISUSE_NONE, NULL};
    if (unlikely(!cache_enter(cache)))
        return deferred_put(p);
    stack_settle(cache, cls);
    if (unlikely(load_relaxed(&cache->cut)))
        found = cache_cut(cache);
    if (unlikely(cache->rests))
        cache->rests = crowd_holds_little(cache);
    else if (stack_used(bin, depot) >= depot->capacity && crowd_comes_to_rest(cache))
        found = cache_rest(cache);
    bool keeps = depot->wary == 0 && !cache->rests && depot->capacity > 0;
    if (keeps && stack_used(bin, depot) >= depot->capacity) {
        struct finding one = stack_flush(cache, cls);
        if (found.what == MISUSE_NONE)
            found = one;
        keeps = depot->capacity > 0;
    }
    if (!keeps)
        found = give_one(cache, cls, p, found);
    if (!cache->rests)
        stack_open(bin, depot);
    lock_release(cache->door);
    if (keeps && unlikely(!cache_push_any(cache, cls, p)) && found.what == MISUSE_NONE)
        found = (struct finding){MISUSE_FREE, p};
    return found;
}

struct finding cache_empty(struct cache *cache)
{
    struct finding found = {MISUSE_NONE, NULL};
    if (!lock_enter(cache->door))
        return found;
    found = cache_drain(cache);
    cache->shut = load_relaxed(&caches_closed);
    lock_release(cache->door);
    return found;
}

struct finding cache_empty_at_end(struct cache *cache)
{
    struct finding found = {MISUSE_NONE, NULL};
    if (!lock_try(&cacheless_lock))
        return found;
    if (lock_try(cache->door)) {
        found = cache_drain(cache);
        lock_release(cache->door);
    }
    lock_release(&cacheless_lock);
    return found;
}

/* ---- caches come and go ---- */

/* New memory is zero: nobody's yet. */
static struct cache *cache_make(void)
{
    ASSERT(lock_held(&cacheless_lock));
    struct cache *cache = meta_take(sizeof *cache);
    if (cache == NULL)
        return NULL;
    cache->generation = 0;
    cache->mine = NULL;
    cache->refills = cache->flushes = cache->seen = cache->unclocked = cache->outflow = 0;
    for (unsigned i = 0; i < BINS; i++) {
        bin_close(&cache->bins[i]);
        cache->bins[i].inverse = i < BIN_FIRST ? 0 : class_inverses[i - BIN_FIRST];
    }
    memset(cache->depots, 0, sizeof cache->depots);
    memset(cache->begun, 0, sizeof cache->begun);
    cache->pocket.block = NULL;
    if (arrays_start(cache)) {
        cache_reset(cache);
        if (roster_enter(cache))
            return cache;
    }
    meta_give(cache, sizeof *cache);
    return NULL;
}

/* The closer sets the flag before it comes to this door. */
static void cache_show(struct cache *cache)
{
    cache->shut = false;
    if (!__atomic_load_n(&caches_closed, __ATOMIC_SEQ_CST))
        store_relaxed(&cache_mine, cache);
}

COLD struct cache *cache_new(void)
{
    if (!lock_enter(&cacheless_lock))
        return NULL;
    struct cache *cache = roster_take();
    if (cache == NULL)
        cache = cache_make();
    if (cache != NULL) {
        lock_take(cache->door);
        cache->seen = 0;
        cache->asking = false;
        cache->fresh = true;
        cache->taken = cache->stays_until = cache->gives = 0;
        cache->began = cache->refills;
        cache_show(cache);
        lock_release(cache->door);
    }
    lock_release(&cacheless_lock);
    if (cache != NULL)
        crowd_cut();
    return cache;
}

COLD void cache_ends_with_thread(struct cache *cache)
{
    if (!lock_enter(cache->door))
        return; /* the door asks again */
    store_relaxed(&cache->mine, &cache_mine);
    lock_release(cache->door);
}

COLD bool cache_resume(struct cache *cache)
{
    if (!cache_enter(cache))
        return false;
    cache_show(cache);
    lock_release(cache->door);
    return true;
}

static bool caches_left FORK_PAGE; /* atomic: some of them are */

COLD struct finding caches_end_left(void)
{
    ASSERT(lock_none_held());
    struct finding found = {MISUSE_NONE, NULL};
    while (load_relaxed(&caches_left) && fork_is_over() && lock_enter(&cacheless_lock)) {
        __atomic_store_n(&caches_left, false, __ATOMIC_SEQ_CST);
        for (struct cache *cache = caches_every(); cache != NULL; cache = cache->every) {
            if (!__atomic_exchange_n(&cache->left, false, __ATOMIC_SEQ_CST) ||
                roster_ownership(cache) != CACHE_LIVING)
                continue;
            struct finding one = cache_end(cache);
            if (found.what == MISUSE_NONE)
                found = one;
        }
        lock_release(&cacheless_lock);
    }
    return found;
}

/* The thread ends while a fork holds its door, or the roster: whoever can ends its cache. A fork
 * that ends clears its state before it looks for such caches; so it finds this one, or is seen to
 * have ended. No thief that knows the thread's cache_mine is in the door when this returns: it was
 * passed, or a fork has it. */
static COLD struct finding cache_leave(struct cache *cache)
{
    __atomic_store_n(&cache->mine, NULL, __ATOMIC_SEQ_CST);
    store_relaxed(&cache_mine, &cache_gone);
    __atomic_store_n(&cache->left, true, __ATOMIC_SEQ_CST);
    __atomic_store_n(&caches_left, true, __ATOMIC_SEQ_CST);
    struct finding found = caches_end_left();
    if (lock_enter(cache->door))
        lock_release(cache->door);
    return found;
}

COLD struct finding cache_delete(struct cache *cache)
{
    if (!lock_enter(cache->door))
        return cache_leave(cache);
    store_relaxed(&cache->mine, NULL);
    store_relaxed(&cache_mine, &cache_gone);
    struct finding found = cache_drain(cache);
    lock_release(cache->door);
    if (!lock_enter(&cacheless_lock)) {
        struct finding late = cache_leave(cache);
        return found.what != MISUSE_NONE ? found : late;
    }
    roster_leave(cache);
    lock_release(&cacheless_lock);
    return found;
}

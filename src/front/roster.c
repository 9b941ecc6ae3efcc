#include "front/roster.h"

#include "back/meta.h"
#include "base/atomic.h"
#include "heap/shards.h"
#include "os/lock.h"
#include "os/os.h"

/* A lock of its own line, since threads meet at their doors at once. */
struct door {
    struct lock lock;
} __attribute__((aligned(CACHE_LINE)));

/* As many as leave the fork's page room for the other locks. */
#define FIRST_DOORS 48

static struct {
    struct lock lock;
    unsigned generation;    /* forks between the first process and this one, and 1; lock: this */
    struct cache *survivor; /* the forking thread's, until the roster says so; lock: this */
    size_t living, asleep;  /* atomic */
    struct cache *every;    /* atomic; grows at the front */
    struct cache *unused;   /* a stack of those that are nobody's; lock: this */
    struct door *doors;     /* not given out yet; lock: this */
    unsigned doors_left;    /* lock: this */
    struct door first[FIRST_DOORS];
} roster FORK_PAGE = {.lock = LOCK(ROSTER), .generation = 1};

bool roster_has_orphans FORK_PAGE;

size_t caches_living(void) { return load_relaxed(&roster.living); }
size_t *caches_count(void) { return &roster.living; }
size_t caches_awake(void) { return load_relaxed(&roster.living) - load_relaxed(&roster.asleep); }
void roster_sleeps(void) { add_relaxed(&roster.asleep, 1); }
void roster_wakes(void) { sub_relaxed(&roster.asleep, 1); }
struct cache *caches_every(void) { return load_acquire(&roster.every); }

enum ownership roster_ownership(const struct cache *cache)
{
    unsigned generation = load_relaxed(&cache->generation);
    if (generation == 0)
        return CACHE_UNUSED;
    return generation == load_relaxed(&roster.generation) || cache == load_relaxed(&roster.survivor)
               ? CACHE_LIVING
               : CACHE_ORPHAN;
}

static void own(struct cache *cache)
{
    ASSERT(lock_held(&roster.lock));
    store_relaxed(&cache->generation, roster.generation);
    store_relaxed(&cache->left, false);
    cache->shard = shard_join();
    add_relaxed(&roster.living, 1);
}

struct cache *roster_take(void)
{
    ASSERT(lock_held(&cacheless_lock));
    lock_take(&roster.lock);
    struct cache *cache = roster.unused;
    if (cache != NULL) {
        roster.unused = cache->unused;
        own(cache);
    }
    lock_release(&roster.lock);
    return cache;
}

static struct lock *door_take(void)
{
    ASSERT(lock_held(&roster.lock));
    if (roster.doors == NULL) {
        roster.doors = roster.first;
        roster.doors_left = FIRST_DOORS;
    }
    if (roster.doors_left == 0) {
        struct door *more = meta_take_pages(os_page);
        if (more == NULL)
            return NULL;
        roster.doors = more;
        roster.doors_left = (unsigned)(os_page / sizeof *more);
    }
    struct lock *door = &roster.doors++->lock;
    roster.doors_left--;
    lock_set_rank(door, RANK_DOOR);
    return door;
}

bool roster_enter(struct cache *cache)
{
    ASSERT(lock_held(&cacheless_lock));
    lock_take(&roster.lock);
    cache->door = door_take();
    if (cache->door != NULL) {
        if (fork_holds_locks) /* roster_unlock lets it go with all others */
            lock_begin(cache->door);
        own(cache);
        cache->every = roster.every;
        store_release(&roster.every, cache);
    }
    lock_release(&roster.lock);
    return cache->door != NULL;
}

bool roster_exchange(struct cache *cache, struct cache *from, struct cache *to)
{
    ASSERT(lock_held(cache->door));
    struct cache **mine = cache->mine;
    return mine != NULL && os_present(mine) &&
           __atomic_compare_exchange_n(mine, &from, to, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

void roster_leave(struct cache *cache)
{
    ASSERT(lock_held(&cacheless_lock));
    lock_take(&roster.lock);
    if (roster_ownership(cache) == CACHE_LIVING)
        sub_relaxed(&roster.living, 1);
    shard_leave(cache->shard);
    store_relaxed(&cache->generation, 0);
    cache->unused = roster.unused;
    roster.unused = cache;
    if (roster.survivor == cache)
        store_relaxed(&roster.survivor, NULL);
    lock_release(&roster.lock);
}

/* An adopted one counts as living until it leaves: a fork meanwhile makes it an orphan again. */
struct cache *roster_adopt(void)
{
    ASSERT(lock_held(&cacheless_lock));
    lock_take(&roster.lock);
    if (roster.survivor != NULL) {
        store_relaxed(&roster.survivor->generation, roster.generation);
        store_relaxed(&roster.survivor, NULL);
    }
    struct cache *orphan = roster.every;
    while (orphan != NULL && roster_ownership(orphan) != CACHE_ORPHAN)
        orphan = orphan->every;
    if (orphan != NULL) {
        store_relaxed(&orphan->generation, roster.generation);
        add_relaxed(&roster.living, 1);
        add_relaxed(&roster.asleep, orphan->asleep);
    } else {
        store_relaxed(&roster_has_orphans, false);
    }
    lock_release(&roster.lock);
    return orphan;
}

void roster_lock(void)
{
    ASSERT(lock_held(&cacheless_lock));
    lock_take(&roster.lock);
    for (struct cache *cache = roster.every; cache != NULL; cache = cache->every)
        lock_take(cache->door);
}

void roster_unlock(void)
{
    for (struct cache *cache = roster.every; cache != NULL; cache = cache->every)
        lock_release(cache->door);
    lock_release(&roster.lock);
}

void roster_unlock_child(struct cache *mine)
{
    ASSERT(lock_held(&roster.lock));
    roster.generation++;
    roster.survivor = mine;
    roster.living = mine != NULL;
    roster.asleep = mine != NULL && mine->asleep;
    roster_has_orphans = true;
    roster_unlock();
}

/* The hardened heap as the slow path sees it (door.h). */
#include "api/blocks.h"
#include "api/door.h"
#include "back/map.h"
#include "base/policy.h"
#include "front/hardened.h"
#include "front/owners.h"
#include "heap/hardening.h"
#include "heap/shards.h"
#include "heap/slab.h"
#include "learn/keep.h"
#include "life/scavenger.h"
#include "profile/rate.h"

static SLOW void *hardened_take_inside(unsigned cls)
{
    struct door door;
    if (!enter_to_take(&door))
        return not_entered();
    void *p = likely(door.cache != NULL) ? hardened_fill(door.cache, cls, &door.found)
                                         : hardened_take_alone(0, cls, &door.found);
    leave_taken(&door, 0);
    return p;
}

static inline void *block(struct cache *cache, unsigned cls)
{
    struct finding found = {MISUSE_NONE, NULL};
    void *p = likely(cache != NULL) ? hardened_take(cache, cls, &found) : NULL;
    if (unlikely(found.what != MISUSE_NONE))
        report_late(found, NULL);
    return likely(p != NULL) ? p : hardened_take_inside(cls);
}

static SLOW void *class_take(unsigned cls) { return block(thread_cache(), cls); }

static SLOW void class_ready(void *p, unsigned cls)
{
    struct finding found = {MISUSE_NONE, NULL};
    hardened_arm(p, cls, &found);
    report_late(found, NULL);
}

static SLOW void *nothing_taken(void)
{
    struct door door;
    if (!enter(&door))
        return NULL;
    void *p = zero_sized_take();
    leave(&door);
    return p;
}

static SLOW void *any_malloc(size_t n)
{
    struct cache *cache =
        thread_cache(); /* the process's start, before what is hardened is known */
    void *nothing = unlikely(n == 0) && hardening.guards ? nothing_taken() : NULL;
    if (unlikely(nothing != NULL))
        return nothing;
    if (unlikely(n > CLASS_MOST - hardening.canary) || unlikely(closed_for(CLOSE_TAKING)))
        return plain.malloc(n);
    void *p = block(cache, class_of(n + hardening.canary));
    return unlikely(p == NULL) || unlikely(p == not_entered()) ? plain.malloc(n) : p;
}

/* A new one would have as many bytes. */
static bool block_stays(size_t n, size_t usable)
{
    return n <= usable && usable == usable_of_new(n, 1);
}

/* Of any address in a slab of the class. Of a block that is never handed out (heap/hardening.h) the
 * canary says that it is free, if it can be read. */
static inline enum misuse wrong_place(unsigned cls, const void *p)
{
    if (unlikely(!block_begins(p, class_inverses[cls])))
        return MISUSE_INTERIOR;
    size_t size = size_classes[cls].size, last = (uintptr_t)p % SLICE + size - 1;
    bool readable = last < SLICE && !guard_pages_hold((const char *)p + size - 1, cls);
    return likely(readable) ? MISUSE_NONE : MISUSE_FREE;
}

static SLOW struct finding hardened_give_inside(unsigned cls, void *p)
{
    struct door door;
    if (!enter(&door))
        return deferred_put(p);
    struct finding found =
        likely(door.cache != NULL) ? hardened_give(door.cache, cls, p) : shards_put(&p, 1);
    leave_given(&door, 0);
    return found;
}

static SLOW struct finding class_give(unsigned cls, void *p)
{
    enum misuse what = wrong_place(cls, p);
    struct cache *cache = thread_cache();
    if (likely(what == MISUSE_NONE))
        what = hardened_disarm(p, cls, cache != NULL && caches_living() <= 1);
    if (unlikely(what != MISUSE_NONE))
        return (struct finding){what, p};
    if (unlikely(cache == NULL) || unlikely(!hardened_push(cache, cls, p)))
        return hardened_give_inside(cls, p);
    return (struct finding){MISUSE_NONE, NULL};
}

static SLOW struct finding give_later(void *p)
{
    const struct slab *slab = map_owner(p);
    if (slab == NULL || slab->cls >= CLASS_SLICES_FIRST)
        return deferred_put(p);
    enum misuse what = wrong_place(slab->cls, p);
    if (likely(what == MISUSE_NONE))
        what = hardened_disarm(p, slab->cls, false);
    return what == MISUSE_NONE ? deferred_put(p) : (struct finding){what, p};
}

/* False where p is no block of no bytes, and never was. */
static SLOW bool nothing_freed(const void *p, const void *caller)
{
    enum misuse what = zero_sized_give(p);
    if (what == MISUSE_FOREIGN)
        return false;
    if (unlikely(what != MISUSE_NONE))
        report_at_once("free", what, p, caller);
    return true;
}

static SLOW bool free_at_once(void *p, const void *caller)
{
    size_t offset;
    if (unlikely(!map_bin_offset(p, &offset)))
        return nothing_freed(p, caller);
    if (unlikely(offset < BIN_FIRST * BIN_BYTES))
        return false;
    unsigned cls = stack_class(bin_stack((unsigned)(offset / BIN_BYTES)));
    report_found(class_give(cls, p), p, caller);
    return true;
}

/* Past all stacks is where it goes in any case. */
static struct finding give(unsigned stack, void *p, bool past)
{
    (void)past;
    return class_give(stack_class(stack), p);
}

/* Whether the bin's blocks have classes; of those that a profile watches, some do. */
static bool has_class(unsigned bin, const void *p)
{
    const struct slab *slab = bin == BIN_SAMPLED ? map_owner(p) : NULL;
    return bin >= BIN_FIRST || (slab != NULL && slab->cls < CLASS_SLICES_FIRST);
}

/* By its canary. */
static SLOW enum misuse look(const void *p, unsigned bin)
{
    if (!has_class(bin, p))
        return MISUSE_NONE;
    const struct slab *slab = map_owner(p);
    enum misuse what = slab != NULL ? canary_look(p, slab->cls) : MISUSE_FREE;
    return what == MISUSE_FUNCTION ? MISUSE_NONE : what;
}

static size_t least(const void *p, unsigned bin, size_t usable)
{
    return hardening.guards || has_class(bin, p) ? usable : keep_block_least(usable);
}

const struct kind hardened_kind = {
    .malloc = any_malloc,
    .take = class_take,
    .ready = class_ready,
    .free = free_at_once,
    .give = give,
    .give_later = give_later,
    .stays = block_stays,
    .look = look,
    .least = least,
};

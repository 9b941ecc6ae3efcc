#include "api/slow.h"

#include <errno.h>
#include <string.h>

#include "api/blocks.h"
#include "api/door.h"
#include "api/sampled.h"
#include "back/huge.h"
#include "back/reserve.h"
#include "back/superslabs.h"
#include "base/policy.h"
#include "front/cache.h"
#include "front/large.h"
#include "front/owners.h"
#include "front/refill.h"
#include "heap/shards.h"
#include "heap/slab.h"
#include "learn/laws.h"
#include "life/statistics.h"
#include "os/os.h"
#include "profile/guarded.h"
#include "profile/rate.h"
#include "profile/samples.h"
#include "report/report.h"

static void *out_of_memory(void)
{
    errno = ENOMEM;
    return NULL;
}

/* ---- malloc ---- */

/* What the stacks do not have: a block of a class, of whole slices at a multiple of more than one,
 * or a huge one (CLASSES). */
static SLOW void *take_inside(unsigned cls, size_t n, size_t align, bool *zero)
{
    struct door door;
    void *p = NULL;
    if (unlikely(!enter_to_take(&door)))
        return not_entered();
    unsigned shard = door.cache != NULL ? door.cache->shard : 0;
    if (unlikely(cls == CLASSES))
        p = huge_take(n, align, zero, &door.found);
    else if (unlikely(align >= SLICE))
        p = shard_take_aligned(shard, cls, align / SLICE);
    else if (unlikely(door.cache == NULL))
        (void)shard_take(shard, cls, &p + 1, 1);
    else if (cls >= CLASS_LARGE)
        p = large_take(door.cache, cls);
    else
        p = cache_refill(door.cache, cls, &door.found);
    leave_taken(&door, cls == CLASSES ? n : 0);
    return p;
}

/* A block of a class. */
static void *class_take_any(unsigned cls)
{
    struct cache *cache = cache_current();
    size_t offset = (BIN_FIRST + cls) * BIN_BYTES;
    void *p;
    if (cls >= CLASS_LARGE ? large_pop(cache, offset, &p) : cache_pop(cache, offset, &p))
        return p;
    return take_inside(cls, 0, 1, NULL);
}

/* Neither null nor `not_entered`. */
static inline bool is_block(const void *p)
{
    return likely(p != NULL) && likely(p != not_entered());
}

static void plain_ready(void *p, unsigned cls)
{
    (void)cls;
    block_unseal(p); /* as malloc's fast body leaves it */
}

static void *plain_take(unsigned cls)
{
    void *p = class_take_any(cls);
    if (likely(is_block(p)))
        block_unseal(p);
    return p;
}

static void *take_unsampled(size_t n, size_t align, bool *zero)
{
    size_t least = least_of(n, align);
    *zero = least <= CLASS_MOST && hardening.zeroes;
    if (least <= CLASS_MOST)
        return kind()->take(class_of(round_up(least, align)));
    if (n <= CLASS_SLICES_MOST && align <= SUPERSLAB && kind()->slices) {
        void *p = likely((align <= SLICE) & !hardening.zeroes)
                      ? class_take_any(class_of_whole(n, align))
                      : take_inside(class_of_whole(n, align), n, larger(align, SLICE), NULL);
        if (likely(p != NULL)) {
            *zero = p != not_entered() && whole_hand_out(p, n);
            return p;
        }
        /* No room for a superslab: a mapping may still fit. */
    }
    return take_inside(CLASSES, n == 0 ? 1 : n, align, zero);
}

/* While a fork holds the heap, a block that was to be a sample is none. Returns it. */
static SLOW void *sampled_miss(void *p)
{
    if (is_block(p) && closed_for(CLOSED_PROFILED))
        samples_miss();
    return p;
}

static SLOW void *sampled_take_or(void *(*take)(unsigned), size_t n, size_t align, unsigned cls,
                                  const char *name)
{
    void *p = sampled_take(n, align, cls, name);
    return likely(p != NULL) ? p : sampled_miss(take(cls));
}

static void *take_counted_named(size_t n, size_t align, bool *zero, const char *name)
{
    size_t least = least_of(n, align);
    *zero = least <= CLASS_MOST && hardening.zeroes;
    if (least <= CLASS_MOST) {
        unsigned cls = class_of(round_up(least, align));
        void *p = ahead_take(cache_current(), cls);
        if (likely(p == NULL) && unlikely(sample_due(cls)))
            return sampled_take_or(kind()->take, n, align, cls, name);
        return likely(p == NULL) ? kind()->take(cls) : p;
    }
    bool huge = n > CLASS_SLICES_MOST || align > SUPERSLAB || !kind()->slices;
    unsigned cls = huge ? CLASSES : class_of_whole(n, align);
    bool due = huge ? sample_due_alone(n) : sample_due(cls);
    void *p = take_unsampled(n, align, zero);
    if (unlikely(due) && closed_for(CLOSED_PROFILED) && is_block(p))
        sampled_note(p, n, huge ? n : size_classes[cls].size, name);
    return p;
}

/* What libc allocates in the middle of it, as for a thread's first block, has no name. */
static SLOW void *take_counted(size_t n, size_t align, bool *zero)
{
    struct sampler *sampler = sampler_mine();
    if (sampler == NULL)
        return take_counted_named(n, align, zero, NULL);
    const char *name = sampler->name;
    sampler->name = NULL;
    void *p = take_counted_named(n, align, zero, name);
    sampler->name = name;
    return p;
}

static inline void *take_once(size_t n, size_t align, bool *zero)
{
    return unlikely(closed_for(CLOSE_TAKING)) ? take_counted(n, align, zero)
                                              : take_unsampled(n, align, zero);
}

/* What is kept for reuse goes back before there is no memory. While a fork holds the heap for long
 * the reserve serves. */
static SLOW void *take(size_t n, size_t align, bool *zero)
{
    if (n > MOST_BYTES || align > MOST_BYTES)
        return out_of_memory();
    thread_cache(); /* the process's start, before its options are asked for */
    void *p = take_once(n, align, zero);
    if (unlikely(p == NULL)) {
        purge_all(thread_cache(), 0);
        p = take_once(n, align, zero);
    }
    if (unlikely(p == not_entered())) {
        p = reserve_take(usable_of_new(n, align), align);
        *zero = false;
        sampled_miss(p);
    }
    if (unlikely(p == NULL)) {
        if (policy.report_no_memory)
            statistics_no_memory(n);
        return out_of_memory();
    }
    if (unlikely(hardening.zeroes) && !*zero) {
        memset(p, 0, n);
        *zero = true;
    }
    return p;
}

/* A function of its own: the room for `zero` would cost what comes before it a frame. */
static SLOW void *plain_malloc(size_t n)
{
    bool zero;
    return take(n, 1, &zero);
}

/* Each kind of call that takes a block, as the heap serves it while malloc is closed. A recording
 * stands around them (recorded_take), a profile and guards within (take_counted). */
typedef void *serve(size_t n, size_t align);

static inline void *malloc_serve(size_t n, size_t align)
{
    (void)align;
    void *p = pop_closed(n);
    return likely(p != NULL) ? p : kind()->malloc(n);
}

static SLOW void *recorded_take(serve *serves, enum event_kind kind, size_t n, size_t align,
                                struct caller from)
{
    bool recorded = recorded_begin();
    void *p = serves(n, align);
    if (recorded)
        recorded_end(kind, p, n, align, from);
    return p;
}

static SLOW void *malloc_closed(size_t n, struct caller from)
{
    return likely(!closed_for(CLOSED_RECORDED))
               ? malloc_serve(n, 1)
               : recorded_take(malloc_serve, EVENT_MALLOC, n, 1, from);
}

SLOW void *slow_malloc(size_t n)
{
    /* Blocks of whole slices: beyond the tables by size, but in the stacks like others. */
    if (n - CLASS_MOST - 1 < CLASS_SLICES_MOST - CLASS_MOST) {
        size_t offset = class_slices_bin_offset(n);
        struct cache *cache = cache_current();
        void *p;
        if (likely(offset < LARGE_OFFSET) ? cache_pop_whole(cache, offset, &p)
                                          : large_pop(cache, offset, &p)) {
            whole_hand_out(p, n);
            return p;
        }
    }
    return unlikely(closed_for(CLOSE_TAKING)) ? malloc_closed(n, CALLER) : kind()->malloc(n);
}

static void *past_serve(size_t n, size_t align)
{
    (void)align;
    if (thread_cache() == NULL || n > CLASS_MOST || kind() != &plain)
        return slow_malloc(n);
    unsigned cls = class_of(n);
    void *p = NULL;
    if (unlikely(closed_for(CLOSE_TAKING)) && unlikely(sample_due_alone(size_classes[cls].size)))
        p = sampled_take(n, 1, cls, NULL);
    if (unlikely(p != NULL))
        return p;
    struct door door;
    if (likely(enter_to_take(&door))) {
        p = past_take(door.cache, cls);
        leave_taken(&door, 0);
    }
    if (unlikely(p == NULL))
        return slow_malloc(n);
    block_unseal(p);
    return p;
}

SLOW void *slow_malloc_past(size_t n)
{
    return likely(!closed_for(CLOSED_RECORDED))
               ? past_serve(n, 1)
               : recorded_take(past_serve, EVENT_MALLOC, n, 1, CALLER);
}

/* The pages of long blocks go back: the program may touch few of them. */
static void make_zero(void *p, size_t n)
{
    if (likely(n < LAW_CLEARED_MOST) || !os_purge(p, round_up(n, os_page)))
        memset(p, 0, n);
}

static inline void *calloc_from(void *p, size_t n)
{
    bool zero = false;
    if (likely(p == NULL))
        p = take(n, 1, &zero);
    if (p != NULL && !zero)
        make_zero(p, n);
    return p;
}

static SLOW void *calloc_serve(size_t n, size_t align)
{
    (void)align;
    return calloc_from(pop_closed(n), n);
}

static SLOW void *calloc_closed(size_t n, struct caller from)
{
    return likely(!closed_for(CLOSED_RECORDED))
               ? calloc_serve(n, 1)
               : recorded_take(calloc_serve, EVENT_CALLOC, n, 1, from);
}

SLOW void *slow_calloc(size_t n)
{
    return unlikely(closed_for(CLOSE_TAKING)) ? calloc_closed(n, CALLER) : calloc_from(NULL, n);
}

/* ---- free ---- */

/* Frees what its stack does not take; `past` all stacks. */
static SLOW struct finding class_give_inside(unsigned stack, void *p, bool past)
{
    struct door door;
    if (unlikely(!enter(&door)))
        return deferred_put(p);
    struct finding found;
    if (unlikely(door.cache == NULL)) {
        found = shards_put(&p, 1);
        clock_advance(size_classes[stack].size);
    } else if (unlikely(past)) {
        found = past_give(door.cache, stack, p);
    } else if (stack_is_large(stack)) {
        found = large_give(door.cache, stack, p);
    } else {
        found = cache_give(door.cache, stack, p);
    }
    /* Of a large block more was asked for than the class before has. */
    leave_given(&door, stack_is_large(stack) ? size_classes[stack - 1].size : 0);
    return found;
}

static SLOW struct finding huge_give_inside(void *p)
{
    struct door door;
    if (unlikely(!enter(&door)))
        return deferred_put(p);
    const struct huge *h = huge_at(p);
    /* A mapping is longer by at most an eighth. What is more of that than a call may give back was
     * hardly ever touched, so it costs nothing. */
    size_t own = h != NULL ? larger(h->usable, excess(h->length, LAW_CALL_MOST)) : 0;
    if (unlikely(load_relaxed(&profile_used)))
        samples_forget(p);
    enum misuse what = huge_give(p);
    leave_given(&door, own);
    return (struct finding){what, p};
}

static inline struct finding stack_give(unsigned stack, void *p)
{
    struct cache *cache = cache_current();
    if (unlikely(cache_rests(cache)) || unlikely(!cache_push_any(cache, stack, p)))
        return class_give_inside(stack, p, false);
    look_after(cache, 0);
    return (struct finding){MISUSE_NONE, NULL};
}

/* The fast body leaves here for many reasons, so all that it looks at is looked at anew. */
static inline enum misuse class_seal(unsigned stack, void *p)
{
    if (unlikely(!block_begins(p, class_inverses[stack_class(stack)])))
        return MISUSE_INTERIOR;
    if (unlikely(freed_before(stack, p)))
        return MISUSE_FREE;
    block_seal(p);
    return MISUSE_NONE;
}

static struct finding plain_give(unsigned stack, void *p, bool past)
{
    enum misuse what = class_seal(stack, p);
    if (unlikely(what != MISUSE_NONE))
        return (struct finding){what, p};
    return past ? class_give_inside(stack, p, true) : stack_give(stack, p);
}

/* Large blocks that come and go through a stack alone: what lies idle elsewhere is to grow old by
 * them too. But a look at it takes longer than all the rest of a free. */
static inline void tell_clock(struct cache *cache, size_t bytes)
{
    cache->untold += bytes;
    if (likely(++cache->untold_frees % LAW_FREES_A_LOOK != 0))
        return;
    clock_advance(cache->untold);
    cache->untold = 0;
    look_after(cache, 0);
}

static struct finding large_free(unsigned cls, void *p)
{
    struct cache *cache = cache_current();
    if (unlikely(cache->closings != 0) || unlikely(!large_push(cache, cls, p)))
        return class_give_inside(cls, p, false);
    tell_clock(cache, size_classes[cls].size);
    return (struct finding){MISUSE_NONE, NULL};
}

static struct finding whole_give(void *p, unsigned bin);

static SLOW struct finding sampled_or_wrong(void *p, unsigned bin, enum misuse what)
{
    if (bin != BIN_SAMPLED)
        return (struct finding){what, p};
    unsigned cls;
    struct finding found = sampled_forget(p, &cls);
    if (cls == CLASSES)
        return found;
    return cls < CLASS_SLICES_FIRST ? kind()->give(cls, p, true) : whole_give(p, BIN_WHOLE);
}

static struct finding whole_give(void *p, unsigned bin)
{
    unsigned cls;
    enum misuse what = whole_take_back(p, &cls);
    struct cache *cache = cache_current();
    if (unlikely((what != MISUSE_NONE) | hardening.zeroes | cache_rests(cache))) /* one branch */
        return what == MISUSE_NONE ? class_give_inside(cls, p, true)
                                   : sampled_or_wrong(p, bin, what);
    if (cls >= CLASS_LARGE)
        return large_free(cls, p);
    if (likely(cache->closings == 0) && likely(cache_push_whole(cache, cls, p)))
        return (struct finding){MISUSE_NONE, NULL};
    return stack_give(cls, p);
}

/* What the map does not know. */
static COLD void other_free(void *p, const void *caller)
{
    if (guarded_holds(p)) {
        report_found(guarded_free(p), p, caller);
        return;
    }
    enum misuse what = reserve_give(p);
    if (what == MISUSE_FOREIGN)
        report_foreign("free", p, caller);
    else if (what != MISUSE_NONE)
        report_at_once("free", what, p, caller);
}

static SLOW void block_free(void *p, const void *caller)
{
    unsigned bin = map_bin(p);
    if (unlikely(bin == BIN_FOREIGN))
        other_free(p, caller);
    else
        report_found(bin >= BIN_FIRST   ? kind()->give(bin_stack(bin), p, false)
                     : bin_of_slab(bin) ? whole_give(p, bin)
                                        : huge_give_inside(p),
                     p, caller);
}

static inline bool large_push_untold(struct cache *cache, unsigned cls, void *p)
{
    if ((cache->untold_frees + 1) % LAW_FREES_A_LOOK == 0 || !large_push(cache, cls, p))
        return false;
    cache->untold += size_classes[cls].size;
    cache->untold_frees++;
    return true;
}

/* A block of whole slices that finds room in its stack: apart from the rest of the slow path, as
 * this needs no stack frame. The map has to say that it is free before the stack has it, and of
 * two threads that free it one must see that. An exchange takes as long as all the rest of the
 * free, so where there is no other thread this is a store. */
FAST bool whole_push(struct cache *cache, void *p)
{
    uint16_t *entry = map_window_entry(p);
    if (entry == NULL || load_relaxed(entry) != load_own(&cache->whole) ||
        (uintptr_t)p % SLICE != 0)
        return false;
    if (likely(caches_living() <= 1))
        store_relaxed(entry, BIN_WHOLE_FREE * BIN_BYTES);
    else if (map_whole_freed(p) == NULL)
        return false; /* another thread was first */
    const struct slab *slab = map_entry_owner(entry);
    unsigned cls = slab->cls;
    if (cls < CLASS_LARGE ? cache_push_whole(cache, cls, p) : large_push_untold(cache, cls, p))
        return true;
    store_relaxed(entry, BIN_WHOLE * BIN_BYTES);
    return false;
}

/* Any block that whole_push did not take. */
static SLOW void any_free(void *p, const void *caller)
{
    if (unlikely(closed_for(CLOSED_RECORDED))) {
        recorded_free(p);
        struct cache *cache = cache_current();
        if (cache->closings == 0 && cache_push_untold(cache, p))
            return;
    }
    if (!kind()->free(p, caller))
        block_free(p, caller);
}

/* The stacks also take blocks outside the window. */
static bool plain_free(void *p, const void *caller)
{
    (void)caller;
    size_t offset = map_offset_outside(p);
    return offset != 0 && cache_push_to(cache_current(), offset, p);
}

const struct kind plain = {
    .slices = true,
    .malloc = plain_malloc,
    .take = plain_take,
    .ready = plain_ready,
    .free = plain_free,
    .give = plain_give,
    .give_later = deferred_put,
    .stays = plain_stays,
    .look = plain_look,
    .least = plain_least,
};

/* Inline, so that every entry from outside knows its caller. Null costs a test and no frame: libc
 * frees it nine times when a thread ends. */
FAST void free_from(void *p, const void *caller)
{
    if (p != NULL && !whole_push(cache_current(), p))
        any_free(p, caller);
}

SLOW void slow_free(void *p) { free_from(p, RETURN_ADDRESS); }

SLOW void slow_free_past(void *p, const void *caller)
{
    unsigned bin = map_bin(p);
    if (bin >= BIN_FIRST && !closed_for(CLOSED_RECORDED))
        report_found(kind()->give(bin_stack(bin), p, true), p, caller);
    else
        free_from(p, caller);
}

SLOW void slow_free_sized(void *p, size_t size)
{
    sized_free_check(p, 1, size, RETURN_ADDRESS);
    free_from(p, RETURN_ADDRESS);
}

SLOW void slow_free_aligned_sized(void *p, size_t align, size_t size)
{
    sized_free_check(p, align, size, RETURN_ADDRESS);
    free_from(p, RETURN_ADDRESS);
}

size_t page_size(void)
{
    thread_cache(); /* the process's start */
    return os_page;
}

SLOW void slow_free_from(void *p, const void *caller) { free_from(p, caller); }

static SLOW void *aligned_serve(size_t n, size_t align)
{
    bool zero;
    return take(n, align, &zero);
}

SLOW void *slow_aligned_for(size_t align, size_t n, struct caller from)
{
    return likely(!closed_for(CLOSED_RECORDED))
               ? aligned_serve(n, align)
               : recorded_take(aligned_serve, EVENT_MALLOC, n, align, from);
}

SLOW void *slow_aligned(size_t align, size_t n) { return slow_aligned_for(align, n, CALLER); }

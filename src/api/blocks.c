#include "api/blocks.h"

#include "api/door.h"
#include "back/huge.h"
#include "back/map.h"
#include "back/reserve.h"
#include "front/cache.h"
#include "front/stacks.h"
#include "heap/hardening.h"
#include "heap/shards.h"
#include "heap/slab.h"
#include "heap/transfer.h"
#include "learn/keep.h"
#include "life/life.h"
#include "os/lock.h"
#include "os/os.h"
#include "profile/guarded.h"
#include "report/report.h"

void report_at_once(const char *function, enum misuse what, const void *p, const void *caller)
{
    thread_cache(); /* the process's start: what it says of misuse */
    report_misuse(
        &(struct wrong_call){.function = function, .what = what, .p = p, .caller = caller});
}

void report_foreign(const char *function, const void *p, const void *caller)
{
    enum misuse what = guarded_holds(p)         ? guarded_look(p)
                       : (uintptr_t)p % 16 != 0 ? MISUSE_UNALIGNED
                       : huge_is_dirty(p)       ? MISUSE_FREE
                                                : MISUSE_FOREIGN;
    report_at_once(function, what, p, caller);
}

void report_found(struct finding found, const void *p, const void *caller)
{
    if (likely(found.what == MISUSE_NONE))
        return;
    report_misuse(&(struct wrong_call){.function = "free",
                                       .what = found.what,
                                       .p = found.where,
                                       .caller = caller,
                                       .late = found.where != p});
}

bool sizes_unsure;

size_t least_of(size_t n, size_t align) { return larger(n + hardening.canary, align); }

size_t usable_of_new(size_t n, size_t align)
{
    size_t least = least_of(n, align);
    if (least <= CLASS_MOST)
        return class_usable(class_of(round_up(least, align)));
    return round_up(n == 0 ? 1 : n, os_page);
}

/* Of an address in a slab: whether its page went back to the kernel and nothing in it was handed
 * out since: then no block at p is in use. Needs no lock: while a block is in use none of its pages
 * is absent. */
static SLOW bool page_is_absent(const void *p)
{
    const struct slab *slab = map_owner(p);
    uint64_t absent = likely(slab != NULL) ? load_relaxed(&slab->absent) : 0;
    return unlikely(absent != 0) &&
           (absent >> (size_t)((const char *)p - slab->base) / os_page % 64 & 1) != 0;
}

/* Whether a block of a class is free and lost its seal with its page, which reads as zeros. */
static inline bool block_purged(const void *p)
{
    return unlikely(((const block_word *)p)[1] == 0) && page_is_absent(p);
}

bool freed_before(unsigned stack, const void *p)
{
    return unlikely(block_sealed(p)) ? block_is_free(stack_class(stack), p) : block_purged(p);
}

/* 0 where no block begins. */
static size_t usable_of(const void *p, unsigned *bin)
{
    void *owner;
    *bin = map_find(p, &owner);
    if (*bin == BIN_FOREIGN)
        return guarded_holds(p) ? guarded_usable(p) : reserve_usable(p);
    if (*bin == BIN_WHOLE_FREE)
        return 0;
    if (unlikely(!bin_of_slab(*bin)))
        return huge_usable(p);
    const struct slab *slab = owner;
    bool barred = unlikely(guard_plans != NULL) && slab != NULL && guard_pages_bar(p, slab->cls);
    return barred ? 0 : slab_usable(p, owner);
}

/* While the caches are closed the slab has each free block. */
enum misuse plain_look(const void *p, unsigned bin)
{
    bool freed = false;
    if (bin >= BIN_FIRST) {
        freed = unlikely(closed_for(CLOSED_CHECKED)) ? block_is_free(stack_class(bin_stack(bin)), p)
                                                     : freed_before(bin_stack(bin), p);
    } else if (bin == BIN_SAMPLED) {
        const struct slab *slab = map_owner(p);
        freed = slab == NULL || block_is_free(slab->cls, p);
    }
    return freed ? MISUSE_FREE : MISUSE_NONE;
}

size_t plain_least(const void *p, unsigned bin, size_t usable)
{
    (void)p, (void)bin;
    return keep_block_least(usable);
}

/* What is wrong with a block at p, where one begins if `usable` is not 0. */
static enum misuse wrong_with(const void *p, unsigned bin, size_t usable)
{
    if (usable != 0)
        return kind()->look(p, bin);
    return bin == BIN_WHOLE_FREE && (uintptr_t)p % SLICE == 0 ? MISUSE_FREE : MISUSE_INTERIOR;
}

size_t block_find(const void *p, unsigned *found, const char *function, const void *caller)
{
    size_t usable = usable_of(p, found);
    enum misuse what = wrong_with(p, *found, usable);
    if (likely(what == MISUSE_NONE))
        return usable;
    if (*found == BIN_FOREIGN)
        report_foreign(function, p, caller);
    else
        report_at_once(function, what, p, caller);
    return 0;
}

SLOW size_t block_usable(const void *p, const char *function, const void *caller)
{
    if (closed_for(CLOSED_RECORDED) && !closed_for(CLOSED_HARDENED)) {
        size_t size = cache_block_size_untold(cache_current(), p);
        if (likely(size != 0) && likely(!block_sealed(p)))
            return size;
    }
    unsigned bin;
    return zero_sized_holds(p) ? 0 : block_find(p, &bin, function, caller);
}

/* What is wrong with any address as one of a block in use; `*rest`: the bytes from there to the
 * block's end. `*ours`: whether it is in hakmem's memory. */
static SLOW enum misuse part_of(const void *p, size_t *rest, bool *ours)
{
    struct address place = address_describe(p);
    const void *start = (const void *)place.start;
    *rest = 0;
    *ours = place.kind != ADDRESS_ELSEWHERE;
    if (!*ours)
        *rest = reserve_usable(p);
    if (!*ours || place.kind == ADDRESS_VACANT || place.kind == ADDRESS_DIRTY)
        return *rest != 0 ? MISUSE_NONE : MISUSE_FOREIGN;
    if (place.kind == ADDRESS_SLAB_END)
        return MISUSE_BEYOND;
    unsigned bin;
    size_t usable = usable_of(start, &bin);
    enum misuse what =
        place.kind == ADDRESS_GUARDED ? guarded_look(start) : wrong_with(start, bin, usable);
    if (what != MISUSE_NONE)
        return what;
    if (p < start)
        return MISUSE_BEFORE;
    size_t offset = (uintptr_t)p - place.start;
    if (offset > usable)
        return MISUSE_BEYOND;
    *rest = usable - offset;
    return MISUSE_NONE;
}

SLOW size_t block_bytes_from(const void *p, const char *function, const void *caller)
{
    thread_cache(); /* the process's start, before what is hardened is known */
    enum misuse what = zero_sized_look(p);
    if (p == NULL || what == MISUSE_NONE)
        return 0;
    size_t rest, before;
    bool ours = true, ignored;
    if (what == MISUSE_FOREIGN)
        what = part_of(p, &rest, &ours);
    if (what == MISUSE_NONE)
        return rest;
    /* The end of one block may be the start of another, or of other memory. */
    if (part_of((const char *)p - 1, &before, &ignored) == MISUSE_NONE && before == 1)
        return 0;
    if (!ours)
        return SIZE_MAX;
    report_at_once(function, what, p, caller);
    return 0;
}

/* A block that realloc left where it was may be up to twice as large as what it holds, or larger if
 * there was no memory for another; who knows an alignment has not reallocated. In a hardened heap
 * realloc leaves none that is too large, but for those of whole slices. */
static bool size_fits(const void *p, unsigned bin, size_t usable, size_t align, size_t size)
{
    if (!is_power_of_two(align) || align > MOST_BYTES || size > MOST_BYTES)
        return false;
    if (guarded_holds(p)) /* as large as requested, and realloc leaves none */
        return larger(size, 1) == usable || (load_relaxed(&sizes_unsure) && size <= usable);
    size_t least = load_relaxed(&sizes_unsure) ? 0 : kind()->least(p, bin, usable);
    return usable_of_new(size, align) == usable || (align == 1 && size <= usable && size >= least);
}

void sized_free_check(const void *p, size_t align, size_t size, const void *caller)
{
    if (p == NULL || !hardening.sizes)
        return;
    unsigned bin;
    size_t usable = usable_of(p, &bin);
    /* The reserve rounds sizes in its own way. */
    bool known = bin != BIN_FOREIGN || guarded_holds(p);
    if (usable == 0 || !known || size_fits(p, bin, usable, align, size))
        return;
    report_misuse(&(struct wrong_call){
        .function = "sized free", .what = MISUSE_SIZE, .p = p, .caller = caller, .size = size});
}

/* ---- with check_functions ---- */

SLOW void *function_note(void *p, enum maker maker)
{
    if (p != NULL)
        maker_note(p, maker);
    return p;
}

SLOW bool function_fits(void *p, enum maker maker, const char *function, const void *caller)
{
    enum maker found = maker_of(p);
    if (found != maker && found != MAKER_UNKNOWN) {
        report_at_once(function, MISUSE_FUNCTION, p, caller);
        return false;
    }
    if (found != MAKER_UNKNOWN && maker != MAKER_MALLOC)
        maker_note(p, MAKER_MALLOC);
    return true;
}

size_t resized_find(void *p, unsigned *found, const void *caller)
{
    size_t usable = block_find(p, found, "realloc", caller);
    bool fits =
        !hardening.functions || usable == 0 || function_fits(p, MAKER_MALLOC, "realloc", caller);
    return fits ? usable : 0;
}

/* ---- whether a block is free already ---- */

/* Whether p lies in the stack. Its owner may push and pop meanwhile, but not p: that is in
 * a stack or with the caller. */
static bool stack_holds(const struct cache *cache, unsigned stack, const void *p)
{
    ASSERT(lock_held(cache->lock));
    const struct bin *bin = &cache->bins[BIN_FIRST + stack];
    const struct cold_bin *cold = &cache->cold[stack];
    bool found = false;
    size_t used = stack_used(bin, cold);
    for (void **slot = used > 0 ? cold->base : NULL; used > 0 && !found; used--)
        found = load_relaxed(++slot) == p;
    return found || load_relaxed(&bin->topmost) == p;
}

/* A slab may have become thin, or be so no more, since the block was freed. */
static bool cache_holds(struct cache *cache, unsigned cls, const void *p)
{
    lock_take(cache->lock);
    bool found = stack_holds(cache, cls, p) ||
                 (cls < CLASSES_THIN && stack_holds(cache, CLASSES + cls, p)) ||
                 ahead_holds(cache, cls, p);
    lock_release(cache->lock);
    return found;
}

/* Where a free block was seen. Under a lock, and in the own stacks, what is seen is so. What
 * another thread popped before it gave the block to the caller may still be seen in that thread's
 * stack where a processor reorders stores; not after a pause. */
enum seen { NOWHERE, IN_ANOTHERS_STACK, FREE };

#define PAUSE_MILLISECONDS 1

/* The own stacks come first: a block may come from there to its slab, never back. */
static enum seen where_free(unsigned cls, const void *p)
{
    if (!lock_enter(&cacheless_lock))
        return NOWHERE; /* a fork holds everything: it can't be proved now */
    struct cache *own = load_relaxed(&cache_mine);
    enum seen seen = NOWHERE;
    if ((own != NULL && own->lock != NULL && cache_holds(own, cls, p)) ||
        shards_check(p) == MISUSE_FREE || transfer_holds(cls, p))
        seen = FREE;
    for (struct cache *cache = caches_every(); cache != NULL && seen == NOWHERE;
         cache = cache->every)
        if (cache != own && cache_holds(cache, cls, p))
            seen = IN_ANOTHERS_STACK;
    lock_release(&cacheless_lock);
    return seen;
}

COLD bool block_is_free(unsigned cls, const void *p)
{
    ASSERT(lock_none_held());
    ASSERT(cls < CLASSES);
    enum seen seen = where_free(cls, p);
    if (seen == IN_ANOTHERS_STACK) {
        os_let_pass(PAUSE_MILLISECONDS);
        seen = where_free(cls, p);
    }
    return seen != NOWHERE;
}

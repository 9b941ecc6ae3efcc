#include "back/huge.h"

#include <string.h>

#include "back/forbidden.h"
#include "back/map.h"
#include "back/meta.h"
#include "back/use.h"
#include "base/memory.h"
#include "base/policy.h"
#include "base/watch.h"
#include "learn/keep.h"
#include "os/lock.h"
#include "os/os.h"

/* Bytes of freed blocks above 32 KiB, up to MARKED_BYTES, that keep their pages, zeroed, at most.
 * A node program with buffers of 5 to 100 KiB has 286,000 page faults and a peak of 160 MiB where
 * none keeps them; 205,000 and 147 with 2 MiB, 185,000 and 164 with 8, 85,000 and 152 with 32, and
 * 0.77 of the time. */
#define OPEN_BYTES (32 * MiB)
/* Of these so many are looked at for one that has nearly as many bytes as are wanted. */
#define OPEN_TRIES 64

struct lock dirty_lock = LOCK(DIRTY);
static struct list dirty = {&dirty, &dirty}; /* the big-block cache, newest first; lock: dirty */
static size_t dirty_low;                     /* the fewest since huge_idle; lock: dirty */
static size_t dirty_guarded;                 /* how many of these have guards; same lock */

/* Adds h, joined with dirty mappings that lie beside it, unless it has guards: they lie between it
 * and all others. The program has freed so much. */
static void dirty_add(struct huge *h, size_t freed)
{
    ASSERT(h->length >= SLICE && h->length % SLICE == 0 && (uintptr_t)h->base % os_page == 0);
    struct huge *joined[2];
    unsigned count = 0;
    lock_take(&dirty_lock);
    store_relaxed(&use.dirty_huge, use.dirty_huge + h->length);
    store_relaxed(&counters.freed_huge, counters.freed_huge + freed);
    use_huge_less(freed);
    use_dirtied();
    dirty_guarded += h->before != 0;
    unsigned most = h->before == 0 ? 2 : 0;
    for (struct list *node = dirty.next, *next; node != &dirty && count < most; node = next) {
        struct huge *other = list_entry(node, struct huge, node);
        next = node->next;
        if (other->base + other->length != h->base && h->base + h->length != other->base)
            continue;
        if (other->base < h->base)
            h->base = other->base;
        h->length += other->length;
        list_remove(node);
        joined[count++] = other;
    }
    list_push(&dirty, &h->node);
    lock_release(&dirty_lock);
    while (count > 0)
        meta_give(joined[--count], sizeof *h);
}

/* Of these bytes `rest` will soon be back. */
static void dirty_less_but(size_t bytes, size_t rest)
{
    ASSERT(lock_held(&dirty_lock));
    ASSERT(bytes <= use.dirty_huge && rest <= bytes);
    store_relaxed(&use.dirty_huge, use.dirty_huge - bytes);
    if (use.dirty_huge + rest < dirty_low)
        dirty_low = use.dirty_huge + rest;
}

/* Unmaps from the oldest dirty mappings until at most `budget` bytes are kept; returns how many it
 * gave back. */
static size_t dirty_trim(size_t budget)
{
    size_t done = 0;
    for (;;) {
        struct huge *oldest = NULL;
        size_t excess = 0;
        lock_take(&dirty_lock);
        if (use.dirty_huge > budget) {
            ASSERT(!list_empty(&dirty));
            excess = round_up(use.dirty_huge - budget, SLICE); /* a budget is any number */
            oldest = list_entry(dirty.prev, struct huge, node);
            if (excess > oldest->length || oldest->before != 0)
                excess = oldest->length;
            list_remove(&oldest->node);
            dirty_guarded -= oldest->before != 0;
            dirty_less_but(oldest->length, oldest->length - excess);
        }
        lock_release(&dirty_lock);
        if (oldest == NULL)
            return done;
        if (unlikely(oldest->before != 0)) {
            done += oldest->length;
            forbidden_look(oldest);
            forbidden_shut(oldest);
            continue;
        }
        char *end = oldest->base + oldest->length;
        if (!os_unmap(end - excess, excess)) {
            /* At its limit of mappings the kernel can refuse: the address space stays ours, empty,
             * and is as good as any for the next block. */
            os_purge(end - excess, excess);
            dirty_add(oldest, 0);
            return done;
        }
        use_let_go(excess);
        done += excess;
        oldest->length -= excess;
        if (oldest->length == 0)
            meta_give(oldest, sizeof *oldest);
        else
            dirty_add(oldest, 0);
    }
}

/* Notes that so many bytes of huge blocks came into use, of mappings that are kept or fresh. */
static void used_add(size_t length, bool fresh)
{
    ASSERT(lock_held(&dirty_lock));
    store_relaxed(&counters.huge.taken, counters.huge.taken + length);
    use_huge_more(length, fresh);
}

static void used_add_fresh(size_t length)
{
    lock_take(&dirty_lock);
    used_add(length, true);
    lock_release(&dirty_lock);
}

/* Cuts off what a dirty mapping begins with; null without memory. Where it is cut a block may
 * begin: the map must cover it. */
static struct huge *dirty_cut(struct huge *h, size_t length)
{
    ASSERT(lock_held(&dirty_lock) && length < h->length);
    struct huge *first = map_cover(h->base + length, SLICE) ? meta_take(sizeof *first) : NULL;
    if (first == NULL)
        return NULL;
    list_init(&first->node);
    first->base = h->base;
    first->length = first->mapped = length;
    first->before = 0;
    h->base += length;
    h->length -= length;
    return first;
}

/* The smallest dirty mapping that holds `length`, or, if much would remain, what it begins with. */
static struct huge *dirty_take(size_t length, size_t align)
{
    struct huge *best = NULL;
    lock_take(&dirty_lock);
    for (struct list *node = dirty.next; node != &dirty; node = node->next) {
        struct huge *h = list_entry(node, struct huge, node);
        if (h->length >= length && h->before == 0 && ((uintptr_t)h->base & (align - 1)) == 0 &&
            (best == NULL || h->length < best->length))
            best = h;
    }
    if (best != NULL) {
        bool much = best->length > length + length / LAW_SMALL_PART;
        struct huge *first = much ? dirty_cut(best, length) : NULL;
        if (first == NULL)
            list_remove(&best->node);
        else
            best = first;
        dirty_less_but(best->length, 0);
        used_add(best->length, false);
    }
    lock_release(&dirty_lock);
    return best;
}

/* A dirty mapping that a block of `length` may grow from: that costs less than to have its pages
 * anew. The longest, unless that would save little. */
static struct huge *dirty_take_shorter(size_t length)
{
    struct huge *best = NULL;
    lock_take(&dirty_lock);
    for (struct list *node = dirty.next; node != &dirty; node = node->next) {
        struct huge *h = list_entry(node, struct huge, node);
        if (h->length >= length / LAW_SMALL_PART && h->before == 0 &&
            (best == NULL || h->length > best->length))
            best = h;
    }
    if (best != NULL) {
        list_remove(&best->node);
        dirty_less_but(best->length, 0);
        used_add(best->length, false);
    }
    lock_release(&dirty_lock);
    return best;
}

/* Grows h's mapping where it finds room; the map may name it (`entered`). */
static bool mapping_move(struct huge *h, size_t length, size_t guards, bool entered)
{
    struct map_room room;
    if (!map_cover_any(&room))
        return false;
    /* Once the pages have moved, the old place may be another thread's. */
    if (entered)
        map_clear(h->base, BIN_HUGE);
    char *moved = os_move(h->base - h->before, h->length + guards, length + guards);
    if (moved != NULL)
        h->base = moved + h->before;
    map_cover_by(h->base, &room);
    if (entered)
        map_set(h->base, 1, BIN_HUGE, h);
    return moved != NULL;
}

/* Makes the mapping of a block in use as long as `length`, with its pages where it stands or
 * elsewhere. */
static bool mapping_resize(struct huge *h, size_t length, bool entered)
{
    ASSERT(length >= SLICE && length % SLICE == 0);
    bool pieces;
    size_t guards = huge_guards_length(h);
    if (!use_hold(excess(length, h->length)))
        return false;
    if (!os_resize(h->base - h->before, h->length + guards, length + guards, &pieces) &&
        (length < h->length || pieces || !mapping_move(h, length, guards, entered))) {
        use_let_go(excess(length, h->length));
        return false;
    }
    use_let_go(excess(h->length, length));
    if (length > h->length) {
        used_add_fresh(length - h->length);
    } else {
        lock_take(&dirty_lock);
        use_huge_less(h->length - length);
        lock_release(&dirty_lock);
    }
    h->length = length;
    h->mapped = length + guards;
    return true;
}

/* The same of one that is kept, and so too short; null where there is none, or it can't grow. */
static struct huge *dirty_grow(size_t length)
{
    struct huge *h = dirty_take_shorter(length);
    if (h == NULL)
        return NULL;
    size_t before = h->length;
    if (!mapping_resize(h, length, false)) {
        lock_take(&dirty_lock);
        use_huge_less(before);
        lock_release(&dirty_lock);
        dirty_add(h, 0);
        return NULL;
    }
    count_refault(&counters.huge, length - before);
    return h;
}

/* ---- with guards, or without ---- */

static bool map_plain(struct huge *h, size_t align)
{
    h->base = os_map_aligned(h->length, align);
    if (h->base != NULL)
        os_name(h->base, h->length, HUGE_NAME);
    return h->base != NULL;
}

/* With guards, the first `usable` bytes can be touched; 0: without guards. */
static struct huge *huge_map(size_t length, size_t align, size_t usable)
{
    if (!use_hold(length))
        return NULL;
    struct huge *h = meta_take(sizeof *h);
    bool mapped = false;
    if (h != NULL) {
        *h = (struct huge){.length = length, .mapped = length};
        list_init(&h->node);
        mapped = usable == 0 ? map_plain(h, align) : huge_guards_map(h, align, usable);
    }
    if (!mapped || !map_cover(h->base, SLICE)) {
        use_let_go(length);
        if (mapped) {
            h->usable = length;
            forbidden_unmap(h);
        } else if (h != NULL) {
            meta_give(h, sizeof *h);
        }
        return NULL;
    }
    count_refault(&counters.huge, length);
    used_add_fresh(length);
    return h;
}

/* Mappings have some lengths for each doubling: so blocks of changing sizes fit what is kept as it
 * is, and begin where others began, at pages that are there. What lies behind a block's end nobody
 * touches. */
static size_t mapping_length(size_t n)
{
    size_t step = ((size_t)1 << highest_bit(n)) / LAW_SMALL_PART;
    return round_up(n, larger(step, SLICE));
}

/* One that is kept, or a new mapping. */
static struct huge *unguarded(size_t n, size_t length, size_t align, bool *zero)
{
    struct huge *h = dirty_take(length, align);
    if (h == NULL && align == os_page)
        h = dirty_grow(length);
    *zero = h == NULL;
    if (h == NULL)
        h = huge_map(length, align, 0);
    if (h == NULL && length > round_up(n, SLICE)) /* near a limit of address space */
        h = huge_map(round_up(n, SLICE), align, 0);
    return h;
}

/* Of the older half of those that stayed open, the one that has nearly as many bytes. */
static SLOW struct huge *dirty_take_guarded(size_t length, size_t usable)
{
    struct huge *best = NULL;
    lock_take(&dirty_lock);
    size_t tries = dirty_guarded >= LAW_SMALL_PART ? smaller(dirty_guarded / 2, OPEN_TRIES) : 0;
    size_t least = SIZE_MAX; /* by how many bytes */
    for (struct list *node = dirty.prev; tries > 0 && least > 0 && node != &dirty;
         node = node->prev) {
        struct huge *h = list_entry(node, struct huge, node);
        size_t by = h->usable > usable ? h->usable - usable : usable - h->usable;
        tries -= h->before != 0;
        if (h->before != 0 && h->length == length && by < least) {
            best = h;
            least = by;
        }
    }
    if (best != NULL) {
        list_remove(&best->node);
        dirty_guarded--;
        dirty_less_but(length, 0);
        used_add(length, false);
    }
    lock_release(&dirty_lock);
    return best;
}

/* One that stayed open, with the bytes that are wanted; what it holds is looked at. */
static SLOW struct huge *guarded_open(size_t length, size_t usable, struct finding *found)
{
    void *lost = forbidden_written();
    if (unlikely(lost != NULL))
        finding_keep(found, (struct finding){MISUSE_WRITTEN, lost});
    struct huge *h = length <= MARKED_BYTES ? dirty_take_guarded(length, usable) : NULL;
    if (h == NULL)
        return NULL;
    if (unlikely(!is_zero(h->base, h->usable))) {
        finding_keep(found, (struct finding){MISUSE_WRITTEN, h->base});
        memset(h->base, 0, h->usable);
    }
    if (huge_guards_move(h, usable))
        return h;
    lock_take(&dirty_lock);
    use_huge_less(length);
    lock_release(&dirty_lock);
    forbidden_shut(h);
    return NULL;
}

/* One that was freed, or a new mapping. */
static SLOW struct huge *guarded(size_t n, size_t length, size_t align, struct finding *found)
{
    size_t usable = round_up(n, os_page);
    struct huge *h = align == os_page ? guarded_open(length, usable, found) : NULL;
    if (h != NULL)
        return h;
    h = align == os_page ? forbidden_take(length, usable) : NULL;
    if (h == NULL)
        return huge_map(length, align, usable);
    count_refault(&counters.huge, length);
    used_add_fresh(length);
    return h;
}

SLOW void *huge_take(size_t n, size_t align, bool *zero, struct finding *found)
{
    ASSERT(n >= 1 && is_power_of_two(align));
    size_t length = mapping_length(n);
    align = larger(align, os_page);
    *zero = true;
    struct huge *h = unlikely(hardening.guards) ? guarded(n, length, align, found) : NULL;
    if (likely(h == NULL))
        h = unguarded(n, length, align, zero);
    if (h == NULL)
        return NULL;
    h->usable = round_up(n, os_page);
    store_relaxed(&h->maker, MAKER_MALLOC);
    use_block_more();
    map_set(h->base, 1, BIN_HUGE, h);
    return h->base;
}

/* Makes h longer by what is kept right behind it. */
static bool dirty_take_behind(struct huge *h, size_t more)
{
    struct huge *behind = NULL;
    lock_take(&dirty_lock);
    for (struct list *node = dirty.next; node != &dirty && behind == NULL; node = node->next) {
        struct huge *other = list_entry(node, struct huge, node);
        if (other->base == h->base + h->length && other->length >= more)
            behind = other;
    }
    bool whole = behind != NULL && behind->length == more;
    if (behind != NULL && (whole || map_cover(behind->base + more, SLICE))) {
        behind->base += more;
        behind->length -= more;
        h->length += more;
        dirty_less_but(more, 0);
        used_add(more, false);
    } else {
        behind = NULL;
    }
    if (whole)
        list_remove(&behind->node);
    lock_release(&dirty_lock);
    if (whole)
        meta_give(behind, sizeof *behind);
    return behind != NULL;
}

/* The descriptor of the block that begins at p; else null, and `*what` says what is there. Its
 * slice names it also below its start. */
static struct huge *block_at(const void *p, enum misuse *what)
{
    void *owner;
    struct huge *h = map_find(p, &owner) == BIN_HUGE ? owner : NULL;
    const void *start = h != NULL ? h->base : p;
    *what = start == p ? MISUSE_FREE : start < p ? MISUSE_INTERIOR : MISUSE_FOREIGN;
    return start == p ? h : NULL;
}

/* ---- with guards: the end of a block, and its size ---- */

/* Whether it keeps its pages, zeroed. */
static SLOW bool stays_open(const struct huge *h)
{
    ASSERT(lock_held(&dirty_lock));
    return h->marks && hardening.zeroes && !forbidden_claims(h->usable) &&
           use.dirty_huge + h->length <= OPEN_BYTES;
}

static SLOW void guards_give(struct huge *h)
{
    lock_take(&dirty_lock);
    bool open = stays_open(h);
    if (!open) {
        store_relaxed(&counters.freed_huge, counters.freed_huge + h->length);
        use_huge_less(h->length);
    }
    lock_release(&dirty_lock);
    if (open) {
        memset(h->base, 0, h->usable);
        dirty_add(h, h->length);
    } else {
        forbidden_shut(h);
    }
}

/* Where it stands, as far as its mapping goes; or longer by moving its pages, where its place is so
 * long that it would not stay inaccessible. */
static SLOW void *guards_resize(struct huge *h, size_t n)
{
    size_t usable = round_up(n, os_page);
    if (usable <= h->length)
        return usable > keep_block_least(h->usable) && huge_guards_move(h, usable) ? h->base : NULL;
    if (forbidden_fits(h->mapped) || !huge_guards_lift(h))
        return NULL;
    bool done = mapping_resize(h, mapping_length(n), true);
    huge_guards_lower(h, done ? usable : h->usable);
    return done ? h->base : NULL;
}

SLOW enum misuse huge_give(void *p)
{
    enum misuse what;
    struct huge *h = block_at(p, &what);
    if (h == NULL)
        return what;
    if (unlikely(load_relaxed(&h->maker) != MAKER_MALLOC))
        return MISUSE_FUNCTION;
    h = map_clear(p, BIN_HUGE);
    if (h == NULL)
        return MISUSE_FREE;
    use_block_less();
    if (unlikely(h->before != 0))
        guards_give(h);
    else
        dirty_add(h, h->length);
    return MISUSE_NONE;
}

struct huge *huge_at(const void *p)
{
    enum misuse what;
    return block_at(p, &what);
}

const void *huge_start(const void *p)
{
    const struct huge *h = map_owner(p);
    return map_bin(p) == BIN_HUGE && h != NULL ? h->base : NULL;
}

void *huge_resize(void *p, size_t n)
{
    enum misuse what;
    struct huge *h = block_at(p, &what);
    if (h == NULL || h->before != 0)
        return h == NULL ? NULL : guards_resize(h, n);
    /* A smaller one stays, as smaller blocks do; it may have a mapping for its alignment alone. */
    if (n < HUGE_LEAST && (n > h->usable || n <= keep_block_least(h->usable)))
        return NULL;
    size_t least = round_up(n, SLICE), length = mapping_length(n);
    bool fits = least <= h->length && length > keep_block_least(h->length);
    if (!fits && length > h->length)
        fits = dirty_take_behind(h, length - h->length);
    if (!fits && !mapping_resize(h, length, true) && !mapping_resize(h, least, true))
        return NULL;
    h->usable = round_up(n, os_page);
    return h->base;
}

size_t huge_dirty(void) { return load_relaxed(&use.dirty_huge); }

size_t huge_idle(void)
{
    lock_take(&dirty_lock);
    size_t idle = dirty_low;
    dirty_low = use.dirty_huge;
    lock_release(&dirty_lock);
    return idle;
}

size_t huge_purge(size_t most)
{
    size_t done = dirty_trim(excess(load_relaxed(&use.dirty_huge), most));
    if (most == SIZE_MAX)
        forbidden_trim(FORBIDDEN_BYTES + 1);
    add_relaxed(&counters.huge.purged, done);
    return done;
}

void *huge_written(void)
{
    void *found = forbidden_written();
    if (found != NULL || !lock_try(&dirty_lock))
        return found;
    for (struct list *node = dirty.next; node != &dirty && found == NULL; node = node->next) {
        const struct huge *h = list_entry(node, struct huge, node);
        if (h->before != 0 && !is_zero(h->base, h->usable))
            found = h->base;
    }
    lock_release(&dirty_lock);
    return found;
}

bool huge_is_dirty(const void *p)
{
    if (!lock_try_unguarded(&dirty_lock))
        return false;
    bool found = false;
    struct list *const lists[] = {&dirty, &forbidden.blocks};
    for (size_t i = 0; i < 2; i++)
        for (struct list *node = lists[i]->next; node != lists[i] && !found; node = node->next) {
            const struct huge *h = list_entry(node, struct huge, node);
            found = (uintptr_t)p - (uintptr_t)h->base < h->length;
        }
    lock_release(&dirty_lock);
    return found;
}

void huge_fork_child(void)
{
    ASSERT(lock_all_held());
    if (dirty_lock.state != 0)
        lock_reset(&dirty_lock);
}

struct huge_inside huge_inside(void)
{
    ASSERT(lock_all_held());
    return (struct huge_inside){&dirty, &forbidden.count, &forbidden.bytes};
}

const struct watch_huge watch_huge = {
    .bytes = sizeof watch_huge,
    .size = sizeof(struct huge),
    .node_at = offsetof(struct huge, node),
    .base_at = offsetof(struct huge, base),
    .length_at = offsetof(struct huge, length),
    .usable_at = offsetof(struct huge, usable),
    .dirty = &dirty,
};

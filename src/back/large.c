#include "back/large.h"

#include "back/map.h"
#include "back/meta.h"
#include "back/slices.h"
#include "base/counters.h"
#include "os/lock.h"
#include "os/os.h"

static struct lock dirty_lock = LOCK(DIRTY);
static struct list kept = {&kept, &kept}; /* the big-block cache, newest first; lock: dirty */
static size_t dirty_low;                  /* the fewest since large_idle; lock: dirty */
static size_t used, used_most; /* bytes of huge blocks in use, and the most so far; lock: dirty */

/* ---- runs of slices ---- */

static size_t slices_for(size_t bytes) { return (bytes + SLICE - 1) >> SLICE_BITS; }

static unsigned run_index(const struct superslab *s, const void *p)
{
    ASSERT((size_t)((const char *)p - s->base) < s->slices * SLICE);
    return (unsigned)((size_t)((const char *)p - s->base) >> SLICE_BITS);
}

static void *run_take(size_t n, size_t align, bool *zero)
{
    ASSERT(n >= 1 && n <= RUN_MOST);
    struct superslab *s;
    size_t slices = slices_for(n);
    char *p = slices_take(slices, align <= SLICE ? 1 : align / SLICE, zero, &s);
    if (p == NULL)
        return NULL;
    unsigned index = run_index(s, p);
    s->run[index] = (uint8_t)slices;
    s->usable[index] = (uint32_t)round_up(n, os_page);
    map_set(p, 1, BIN_LARGE, s);
    return p;
}

static void run_give(struct superslab *s, void *p)
{
    ASSERT(s->run[run_index(s, p)] >= 1);
    size_t slices = s->run[run_index(s, p)];
    slices_give(s, p, slices);
}

static void *run_resize(struct superslab *s, void *p, size_t n)
{
    ASSERT(n >= 1 && s->run[run_index(s, p)] >= 1);
    unsigned index = run_index(s, p);
    size_t now = s->run[index];
    size_t then = slices_for(n);
    if (n > RUN_MOST)
        return NULL;
    if (then > now) {
        if (!slices_extend(s, p, now, then - now))
            return NULL;
    } else if (then < now) {
        slices_give(s, (char *)p + then * SLICE, now - then);
    }
    s->run[index] = (uint8_t)then;
    s->usable[index] = (uint32_t)round_up(n, os_page);
    return p;
}

/* ---- huge blocks ---- */

/* Adds h, joined with kept mappings that it touches. The program has freed `freed` bytes. */
static void dirty_add(struct huge *h, size_t freed)
{
    ASSERT(h->length >= SLICE && h->length % SLICE == 0 && (uintptr_t)h->base % os_page == 0);
    struct huge *joined[2];
    unsigned count = 0;
    lock_take(&dirty_lock);
    ASSERT(freed <= used);
    store_relaxed(&counters.huge_dirty, counters.huge_dirty + h->length);
    store_relaxed(&counters.freed_huge, counters.freed_huge + freed);
    used -= freed;
    for (struct list *node = kept.next, *next; node != &kept && count < 2; node = next) {
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
    list_push(&kept, &h->node);
    lock_release(&dirty_lock);
    while (count > 0)
        meta_give(joined[--count], sizeof *h);
}

static void dirty_less(size_t bytes)
{
    ASSERT(lock_held(&dirty_lock));
    ASSERT(bytes <= counters.huge_dirty);
    store_relaxed(&counters.huge_dirty, counters.huge_dirty - bytes);
    if (counters.huge_dirty < dirty_low)
        dirty_low = counters.huge_dirty;
}

/* Unmaps from the oldest kept mappings until at most `budget` bytes are kept; returns how many it
 * gave back. */
static size_t dirty_trim(size_t budget)
{
    size_t done = 0;
    for (;;) {
        struct huge *oldest = NULL;
        size_t excess = 0;
        lock_take(&dirty_lock);
        if (counters.huge_dirty > budget) {
            ASSERT(!list_empty(&kept));
            excess = round_up(counters.huge_dirty - budget, SLICE); /* a budget is any number */
            oldest = list_entry(kept.prev, struct huge, node);
            list_remove(&oldest->node);
            dirty_less(oldest->length);
        }
        lock_release(&dirty_lock);
        if (oldest == NULL)
            return done;
        if (excess > oldest->length)
            excess = oldest->length;
        char *end = oldest->base + oldest->length;
        if (!os_unmap(end - excess, excess)) {
            /* At its limit of mappings the kernel can refuse: the address space stays ours, empty,
             * and is as good as any for the next block. */
            os_purge(end - excess, excess);
            dirty_add(oldest, 0);
            return done;
        }
        done += excess;
        oldest->length -= excess;
        if (oldest->length == 0)
            meta_give(oldest, sizeof *oldest);
        else
            dirty_add(oldest, 0);
    }
}

/* Notes that so many bytes of huge blocks came into use; by how much they are more than ever. */
static size_t used_add(size_t length)
{
    ASSERT(lock_held(&dirty_lock));
    used += length;
    store_relaxed(&counters.huge.taken, counters.huge.taken + length);
    size_t more = used > used_most ? used - used_most : 0;
    used_most += more;
    return more;
}

/* As used_add, for bytes that were just mapped. If the program needs more than ever before, as much
 * of its idle memory goes back, so that the two do not add up. In total no more goes back than the
 * most that was ever in use, so memory that comes and goes keeps its pages. */
static void used_add_mapped(size_t length)
{
    lock_take(&dirty_lock);
    size_t more = used_add(length);
    lock_release(&dirty_lock);
    if (unlikely(more > 0) && large_dirty() > 0)
        large_purge(more);
}

/* The smallest kept mapping that holds `length`: whole, or what it begins with, described by
 * `fresh`, where much would remain. Where it is cut a block may begin: the map must cover it. */
static struct huge *dirty_take(size_t length, size_t align, struct huge *fresh)
{
    struct huge *best = NULL;
    lock_take(&dirty_lock);
    for (struct list *node = kept.next; node != &kept; node = node->next) {
        struct huge *h = list_entry(node, struct huge, node);
        if (h->length >= length && ((uintptr_t)h->base & (align - 1)) == 0 &&
            (best == NULL || h->length < best->length))
            best = h;
    }
    if (best != NULL && best->length > length + length / 8 &&
        map_cover(best->base + length, SLICE)) {
        fresh->base = best->base;
        fresh->length = length;
        best->base += length;
        best->length -= length;
        best = fresh;
    } else if (best != NULL) {
        list_remove(&best->node);
    }
    if (best != NULL) {
        dirty_less(best->length);
        used_add(best->length);
    }
    lock_release(&dirty_lock);
    return best;
}

/* A kept mapping that a block of `length` may grow from, if the program needs more than ever: what
 * it has freed then serves at once, where a new mapping would come on top of it. The longest,
 * unless that would save little. */
static struct huge *dirty_take_shorter(size_t length)
{
    struct huge *best = NULL;
    lock_take(&dirty_lock);
    if (used + length > used_most)
        for (struct list *node = kept.next; node != &kept; node = node->next) {
            struct huge *h = list_entry(node, struct huge, node);
            if (h->length >= length / 8 && (best == NULL || h->length > best->length))
                best = h;
        }
    if (best != NULL) {
        list_remove(&best->node);
        dirty_less(best->length);
        used_add(best->length);
    }
    lock_release(&dirty_lock);
    return best;
}

/* Grows h's mapping where it finds room; the map may name it (`entered`). */
static bool mapping_move(struct huge *h, size_t length, bool entered)
{
    struct map_leaf *leaf = map_cover_any();
    if (leaf == NULL)
        return false;
    /* Once the pages have moved, the old place may be another thread's. */
    if (entered)
        map_clear(h->base, BIN_HUGE);
    char *moved = os_move(h->base, h->length, length);
    if (moved != NULL)
        h->base = moved;
    map_cover_by(h->base, leaf);
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
    if (!os_resize(h->base, h->length, length, &pieces) &&
        (length < h->length || pieces || !mapping_move(h, length, entered)))
        return false;
    if (length > h->length) {
        used_add_mapped(length - h->length);
    } else {
        lock_take(&dirty_lock);
        ASSERT(h->length - length <= used);
        used -= h->length - length;
        lock_release(&dirty_lock);
    }
    h->length = length;
    return true;
}

/* Grows a kept mapping that is too short; null if there is none or if it can't grow. */
static struct huge *dirty_grow(size_t length)
{
    struct huge *h = dirty_take_shorter(length);
    if (h == NULL)
        return NULL;
    size_t before = h->length;
    if (!mapping_resize(h, length, false)) {
        dirty_add(h, before);
        return NULL;
    }
    count_refault(&counters.huge, length - before);
    return h;
}

static void *huge_take(size_t n, size_t align, bool *zero)
{
    ASSERT(n >= 1 && is_power_of_two(align));
    size_t length = round_up(n, SLICE);
    if (align < os_page)
        align = os_page;
    struct huge *fresh = meta_take(sizeof *fresh);
    if (fresh == NULL)
        return NULL;
    store_relaxed(&fresh->bin, BIN_HUGE);
    list_init(&fresh->node);
    struct huge *h = dirty_take(length, align, fresh);
    if (h == NULL && align == os_page)
        h = dirty_grow(length);
    *zero = h == NULL;
    if (h == NULL) {
        h = fresh;
        h->length = length;
        h->base = os_map_aligned(length, align);
        if (h->base == NULL || !map_cover(h->base, SLICE)) {
            if (h->base != NULL)
                os_unmap(h->base, length);
            meta_give(h, sizeof *h);
            return NULL;
        }
        os_name(h->base, length, "hakmem: huge block");
        count_refault(&counters.huge, length);
        used_add_mapped(length);
    } else if (h != fresh) {
        meta_give(fresh, sizeof *fresh);
    }
    h->usable = round_up(n, os_page);
    map_set(h->base, 1, BIN_HUGE, h);
    return h->base;
}

/* Makes h longer by what is kept right behind it. */
static bool dirty_take_behind(struct huge *h, size_t more)
{
    struct huge *behind = NULL;
    bool whole = false;
    lock_take(&dirty_lock);
    for (struct list *node = kept.next; node != &kept && behind == NULL; node = node->next) {
        struct huge *other = list_entry(node, struct huge, node);
        if (other->base == h->base + h->length && other->length >= more)
            behind = other;
    }
    whole = behind != NULL && behind->length == more;
    if (behind != NULL && (whole || map_cover(behind->base + more, SLICE))) {
        behind->base += more;
        behind->length -= more;
        h->length += more;
        dirty_less(more);
        used_add(more);
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

static void huge_give(struct huge *h) { dirty_add(h, h->length); }

static void *huge_resize(struct huge *h, size_t n)
{
    size_t length = round_up(n, SLICE);
    if (n <= RUN_MOST)
        return NULL;
    bool fits = length <= h->length && length > h->length / 2;
    if (length > h->length)
        fits = dirty_take_behind(h, length - h->length);
    if (!fits && !mapping_resize(h, length, true))
        return NULL;
    h->usable = round_up(n, os_page);
    return h->base;
}

/* ---- both ---- */

void *large_take(size_t n, size_t align, bool *zero)
{
    ASSERT(n >= 1 && is_power_of_two(align));
    if (n <= RUN_MOST && align <= SUPERSLAB) {
        void *p = run_take(n, align, zero);
        if (p != NULL)
            return p;
        /* No room for a whole superslab: an own mapping may still fit. */
    }
    return huge_take(n, align, zero);
}

static_assert(offsetof(struct huge, bin) == 0 && offsetof(struct superslab, bin) == 0,
              "a descriptor says whose it is");

unsigned large_parked_bin(const void *owner) { return load_relaxed((const unsigned *)owner); }

void *large_start(const void *p, const void *owner)
{
    return large_parked_bin(owner) == BIN_HUGE ? ((const struct huge *)owner)->base
                                               : (char *)p - (uintptr_t)p % SLICE;
}

/* The descriptor of the block that begins at p; else null, and `*what` says what is there. */
static void *block_owner(const void *p, enum misuse *what)
{
    void *owner = map_owner(p);
    const void *start = owner != NULL ? large_start(p, owner) : p;
    *what = start == p ? MISUSE_FREE : start < p ? MISUSE_INTERIOR : MISUSE_FOREIGN;
    return start == p ? owner : NULL;
}

/* What is wrong with p as the start of a block of this bin. */
static enum misuse start_check(const void *p, unsigned bin)
{
    if (likely(bin == BIN_LARGE))
        return (uintptr_t)p % SLICE == 0 ? MISUSE_NONE : MISUSE_INTERIOR;
    enum misuse what;
    return block_owner(p, &what) != NULL ? MISUSE_NONE : what;
}

bool large_begins(const void *p)
{
    enum misuse what;
    return block_owner(p, &what) != NULL;
}

enum misuse large_give(void *p, unsigned bin)
{
    ASSERT(bin >= BIN_LARGE && bin <= BIN_PARKED);
    enum misuse what = start_check(p, bin);
    if (what != MISUSE_NONE)
        return what;
    void *owner = bin == BIN_PARKED ? NULL : map_clear(p, bin);
    if (owner == NULL)
        return MISUSE_FREE;
    if (bin == BIN_LARGE)
        run_give(owner, p);
    else
        huge_give(owner);
    return MISUSE_NONE;
}

size_t large_parked_bytes(const void *p, const void *owner)
{
    const struct superslab *s = owner;
    return large_parked_bin(owner) == BIN_HUGE ? ((const struct huge *)owner)->length
                                               : s->run[run_index(s, p)] * SLICE;
}

enum misuse large_park(void *p, unsigned bin, size_t *bytes)
{
    ASSERT(bin >= BIN_LARGE && bin <= BIN_PARKED);
    enum misuse what = start_check(p, bin);
    if (what != MISUSE_NONE)
        return what;
    const void *owner = bin == BIN_PARKED ? NULL : map_park(p, bin);
    if (owner == NULL)
        return MISUSE_FREE;
    *bytes = large_parked_bytes(p, owner);
    return MISUSE_NONE;
}

void large_release(void *p)
{
    void *owner = map_clear(p, BIN_PARKED);
    if (owner == NULL) /* it has been taken */
        return;
    if (large_parked_bin(owner) == BIN_LARGE)
        run_give(owner, p);
    else
        huge_give(owner);
}

static bool large_fits(size_t bytes, size_t n)
{
    size_t needed = round_up(n, SLICE);
    return needed == bytes || (needed > RUN_MOST && needed < bytes && bytes <= needed + needed / 8);
}

/* Makes it the caller's: its descriptor, and its bin; null where it is not there. */
static void *unpark(void *p, unsigned *bin)
{
    void *owner = map_owner(p);
    *bin = owner == NULL ? BIN_FOREIGN : large_parked_bin(owner);
    if (*bin != BIN_LARGE && *bin != BIN_HUGE)
        return NULL;
    owner = map_unpark(p, *bin);
    if (owner != NULL && unlikely(large_parked_bin(owner) != *bin)) { /* it came and went */
        *bin = large_parked_bin(owner);
        map_set(p, 1, *bin, owner);
    }
    return owner;
}

void *large_unpark(void *p)
{
    unsigned bin;
    const void *owner = unpark(p, &bin);
    return owner != NULL ? large_start(p, owner) : NULL;
}

enum reuse large_reuse(void **p, size_t n, size_t *bytes)
{
    unsigned bin;
    void *owner = unpark(*p, &bin);
    if (owner == NULL)
        return REUSE_GONE;
    void *start = large_start(*p, owner);
    if (unlikely(start != *p)) { /* another's: it is free, and goes back like any */
        *p = start;
        return REUSE_UNFIT;
    }
    *bytes = large_parked_bytes(*p, owner);
    if (!large_fits(*bytes, n))
        return REUSE_UNFIT;
    if (bin == BIN_HUGE) {
        ((struct huge *)owner)->usable = round_up(n, os_page);
    } else {
        struct superslab *s = owner;
        s->usable[run_index(s, *p)] = (uint32_t)round_up(n, os_page);
    }
    return REUSE_DONE;
}

size_t large_usable(const void *p, unsigned bin)
{
    enum misuse what;
    void *owner = block_owner(p, &what);
    if (owner == NULL || bin == BIN_PARKED)
        return 0;
    if (bin == BIN_HUGE)
        return ((struct huge *)owner)->usable;
    struct superslab *s = owner;
    return s->usable[run_index(s, p)];
}

void *large_resize(void *p, unsigned bin, size_t n)
{
    enum misuse what;
    void *owner = block_owner(p, &what);
    if (owner == NULL || bin == BIN_PARKED)
        return NULL;
    return bin == BIN_HUGE ? huge_resize(owner, n) : run_resize(owner, p, n);
}

size_t large_dirty(void) { return load_relaxed(&counters.huge_dirty); }

size_t large_idle(void)
{
    lock_take(&dirty_lock);
    size_t idle = dirty_low;
    dirty_low = counters.huge_dirty;
    lock_release(&dirty_lock);
    return idle;
}

size_t large_purge(size_t most)
{
    lock_take(&dirty_lock);
    size_t budget = counters.huge_dirty > most ? counters.huge_dirty - most : 0;
    lock_release(&dirty_lock);
    size_t done = dirty_trim(budget);
    add_relaxed(&counters.huge.purged, done);
    return done;
}

bool large_is_dirty(const void *p)
{
    if (!lock_try_unguarded(&dirty_lock))
        return false;
    bool found = false;
    for (struct list *node = kept.next; node != &kept && !found; node = node->next) {
        struct huge *h = list_entry(node, struct huge, node);
        found = (uintptr_t)p - (uintptr_t)h->base < h->length;
    }
    lock_release(&dirty_lock);
    return found;
}

void large_fork_child(void)
{
    ASSERT(lock_all_held());
    if (dirty_lock.state != 0)
        lock_reset(&dirty_lock);
}

struct large_inside large_inside(void)
{
    ASSERT(lock_all_held());
    return (struct large_inside){&kept, &counters.huge_dirty};
}

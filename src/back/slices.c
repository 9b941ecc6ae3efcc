#include "back/slices.h"

#include "back/map.h"
#include "back/superslabs.h"
#include "back/use.h"
#include "base/atomic.h"
#include "base/memory.h"
#include "base/policy.h"
#include "os/os.h"

/* Superslabs with room among which the place of a slab is chosen by chance; while there are fewer,
 * each slab makes one more. The distance from a block of 64 bytes to one of 1 KiB, in units of 64
 * KiB, then has 8.7 bits of entropy; in one superslab, lowest slices first, it has none. python3
 * has 15,904 KiB resident instead of 15,824. */
#define SHUFFLED_LEAST 4

/* Where n slices fit in s at the given alignment, as a set of first slices. */
static uint64_t fitting_starts(const struct superslab *s, size_t n, size_t align)
{
    ASSERT(n >= 1 && n <= SUPERSLAB_SLICES);
    ASSERT(is_power_of_two(align) && align <= SUPERSLAB_SLICES);
    uint64_t starts = run_starts(s->free, (unsigned)n);
    if (align > 1) {
        uint64_t aligned = 0;
        for (unsigned i = 0; i < SUPERSLAB_SLICES; i += (unsigned)align)
            aligned |= (uint64_t)1 << i;
        starts &= aligned;
    }
    return starts;
}

/* Where an alignment counts, few candidates are tried: a new superslab has room for certain. */
#define ALIGNED_TRIES 8

static struct superslab *superslab_with(size_t n, size_t align, uint64_t *starts)
{
    ASSERT(lock_held(&superslabs_lock));
    int tries = ALIGNED_TRIES;
    for (uint64_t lists = superslabs_nonempty & ~low_bits((unsigned)n - 1); lists != 0;
         lists &= lists - 1) {
        struct list *head = &superslabs_by_longest[lowest_bit(lists)];
        for (struct list *node = head->next, *next; node != head; node = next) {
            struct superslab *s = list_entry(node, struct superslab, node);
            next = node->next;
            *starts = fitting_starts(s, n, align);
            if (*starts != 0)
                return s;
            superslab_relist(s, longest_run(s->free));
            if (align > 1 && --tries == 0)
                return NULL;
        }
    }
    return NULL;
}

/* Looked at, at most. */
#define CANDIDATES_MOST 16

/* In a hardened heap: one of those with room, by chance. While they are few, each call makes one
 * more, so that slabs lie far apart: but not of addresses that the program may want, where they are
 * limited. */
static SLOW struct superslab *superslab_any(size_t n, size_t align, bool fine, uint64_t *starts)
{
    struct superslab *chosen = NULL;
    unsigned count = 0;
    for (uint64_t lists = superslabs_nonempty & ~low_bits((unsigned)n - 1); lists != 0;
         lists &= lists - 1) {
        const struct list *head = &superslabs_by_longest[lowest_bit(lists)];
        for (struct list *node = head->next; node != head && count < CANDIDATES_MOST;
             node = node->next) {
            struct superslab *s = list_entry(node, struct superslab, node);
            uint64_t fitting = fitting_starts(s, n, align);
            if (fitting != 0 && slots_random() % ++count == 0) {
                chosen = s;
                *starts = fitting;
            }
        }
    }
    bool more = count == 0 || (count < SHUFFLED_LEAST && superslabs_may_spread());
    struct superslab *s = more ? superslab_new(n) : NULL;
    if (s == NULL)
        return chosen;
    superslab_starts(s, fine);
    if (slots_random() % ++count == 0) {
        chosen = s;
        *starts = fitting_starts(s, n, align);
    }
    return chosen;
}

/* One of the bits that are set, by chance. */
static SLOW unsigned any_bit(uint64_t set)
{
    for (uint64_t skip = slots_random() % count_bits(set); skip > 0; skip--)
        set &= set - 1;
    return lowest_bit(set);
}

/* Of free slices: those that hold no pages. */
static size_t fresh_bytes(const struct superslab *s, uint64_t mask)
{
    uint64_t fresh = mask & ~s->touched;
    return fresh == 0 ? 0 : count_bits(fresh) * SLICE;
}

/* The longest run may be shorter now; superslab_with finds that out when it searches for one. So a
 * run that is taken and given back alternately does not change the lists. */
static void slices_mark_taken(struct superslab *s, uint64_t mask, size_t n)
{
    ASSERT(lock_held(&superslabs_lock));
    ASSERT(n >= 1 && count_bits(mask) == n);
    ASSERT((s->free & mask) == mask);
    uint64_t paged = s->touched & mask;
    store_relaxed(&counters.slices.taken, counters.slices.taken + n * SLICE);
    slices_dirty_less(paged == mask ? n : count_bits(paged));
    use_slices_more(n * SLICE, paged != mask);
    if (s->purged & mask) {
        count_refault(&counters.slices, count_bits(s->purged & mask) * SLICE);
        s->purged &= ~mask;
    }
    if (s->holed & mask)
        count_refault(&counters.pages, slices_whole(s, mask));
    s->free &= ~mask;
    s->touched |= mask;
    if (unlikely((s->huge & mask & ~paged) != 0))
        superslab_touched(s, mask & ~paged);
    if (s->free == 0)
        superslab_relist(s, 0);
}

static void *hand_out(struct superslab *s, unsigned first, size_t n, bool fine, bool *zero)
{
    uint64_t mask = slice_mask(first, n);
    *zero = (s->touched & mask) == 0;
    slices_mark_taken(s, mask, n);
    s->fine = fine ? s->fine | mask : s->fine & ~mask;
    return s->base + first * SLICE;
}

/* One with room for n slices where there was none. */
static struct superslab *superslab_more(size_t n, size_t align, bool fine)
{
    struct superslab *s = superslab_grow(n);
    if (s != NULL && fitting_starts(s, n, align) != 0)
        return s;
    s = superslab_new(n);
    if (s != NULL)
        superslab_starts(s, fine);
    return s;
}

void *slices_take(size_t n, size_t align, bool fine, bool *zero, struct superslab **from)
{
    lock_take(&superslabs_lock);
    uint64_t starts;
    bool shuffles = unlikely(hardening.shuffles);
    struct superslab *s =
        shuffles ? superslab_any(n, align, fine, &starts) : superslab_with(n, align, &starts);
    unsigned first = s == NULL ? 0 : shuffles ? any_bit(starts) : lowest_bit(starts);
    size_t fresh = s != NULL ? fresh_bytes(s, slice_mask(first, n)) : n * SLICE;
    if (fresh > 0 && unlikely(!use_hold(fresh))) {
        lock_release(&superslabs_lock);
        return NULL;
    }
    if (s == NULL) {
        s = superslab_more(n, align, fine);
        first = s != NULL ? lowest_bit(fitting_starts(s, n, align)) : 0;
        if (s == NULL)
            use_let_go(fresh);
    }
    *from = s;
    void *start = s != NULL ? hand_out(s, first, n, fine, zero) : NULL;
    lock_release(&superslabs_lock);
    return start;
}

/* Free slices of s with some guard pages, and none but these. */
static SLOW uint64_t guarded_so(const struct superslab *s, uint64_t pages)
{
    uint64_t found = 0;
    for (uint64_t set = s->free; set != 0; set &= set - 1) {
        unsigned i = lowest_bit(set);
        if (s->guarded[i] != 0 && (s->guarded[i] & ~pages) == 0)
            found |= (uint64_t)1 << i;
    }
    return found;
}

SLOW void *slices_take_guarded(uint64_t pages, bool fine, bool *zero, struct superslab **from)
{
    struct superslab *chosen = NULL;
    uint64_t starts = 0;
    unsigned looked_at = 0, count = 0;
    lock_take(&superslabs_lock);
    bool any = hardening.shuffles;
    for (uint64_t lists = superslabs_nonempty; lists != 0 && (any || starts == 0);
         lists &= lists - 1) {
        const struct list *head = &superslabs_by_longest[lowest_bit(lists)];
        for (struct list *node = head->next; node != head && looked_at < CANDIDATES_MOST;
             node = node->next, looked_at++) {
            struct superslab *s = list_entry(node, struct superslab, node);
            uint64_t guarded = guarded_so(s, pages);
            if (guarded != 0 && (any ? slots_random() % ++count == 0 : starts == 0)) {
                chosen = s;
                starts = guarded;
            }
        }
    }
    void *start = NULL;
    unsigned first = chosen == NULL ? 0 : any ? any_bit(starts) : lowest_bit(starts);
    if (chosen != NULL && use_hold(fresh_bytes(chosen, slice_mask(first, 1))))
        start = hand_out(*from = chosen, first, 1, fine, zero);
    lock_release(&superslabs_lock);
    return start;
}

bool slices_extend(struct superslab *s, void *start, size_t n, size_t more)
{
    ASSERT(n >= 1 && more >= 1);
    unsigned first = slice_index(s, start) + (unsigned)n;
    if (first + more > SUPERSLAB_SLICES)
        return false;
    uint64_t mask = slice_mask(first, more);
    lock_take(&superslabs_lock);
    ASSERT((s->free & slice_mask(slice_index(s, start), n)) == 0);
    bool fits = (s->free & mask) == mask;
    fits = fits && use_hold(fresh_bytes(s, mask));
    if (fits) {
        slices_mark_taken(s, mask, more);
        s->fine &= ~mask;
    }
    lock_release(&superslabs_lock);
    return fits;
}

/* Runs of a set of pages. */
static SLOW bool guard_pages_in(void *slice, uint64_t pages)
{
    char *base = slice;
    struct os_run runs[GUARD_PAGES_MOST];
    size_t n = 0;
    while (pages != 0) {
        unsigned first = lowest_bit(pages);
        unsigned end = first + lowest_bit(~(pages >> first));
        runs[n++] = (struct os_run){base + first * os_page, (end - first) * os_page};
        pages &= ~low_bits(end);
    }
    return n == 0 || os_guard_runs(runs, n);
}

/* The last page of a slice. */
static SLOW void fence(struct superslab *s, unsigned slice)
{
    uint64_t bit = slice_mask(slice, 1);
    if ((load_relaxed(&s->fenced) & bit) != 0 || load_relaxed(&s->unguardable))
        return;
    if (guard_pages_in(s->base + slice * SLICE, GUARD_LAST))
        __atomic_fetch_or(&s->fenced, bit, __ATOMIC_RELEASE);
    else
        store_relaxed(&s->unguardable, true);
}

SLOW void slices_guard(struct superslab *s, void *start, uint64_t pages)
{
    ASSERT(pages < GUARDS_UNKNOWN && SLICE / os_page <= GUARD_PAGES_MOST);
    unsigned slice = slice_index(s, start);
    uint16_t *guarded = &s->guarded[slice];
    uint64_t missing = pages & ~(uint64_t)(*guarded | GUARD_LAST);
    if ((pages & GUARD_LAST) != 0)
        fence(s, slice);
    if (missing == 0 || load_relaxed(&s->unguardable))
        return;
    if (guard_pages_in(start, missing)) {
        store_release(guarded, *guarded | (uint16_t)missing);
        return;
    }
    store_relaxed(&s->unguardable, true);
    store_relaxed(guarded, os_unguard(start, SLICE - os_page) ? 0 : GUARDS_UNKNOWN);
}

SLOW void slices_guard_before(struct superslab *s, void *start)
{
    if (start != s->base)
        fence(s, slice_index(s, start) - 1);
}

SLOW bool slices_unguard(struct superslab *s, void *start, uint64_t but)
{
    uint16_t *guarded = &s->guarded[slice_index(s, start)];
    if ((*guarded & ~but) == 0)
        return true;
    if (!os_unguard(start, SLICE - os_page))
        return false;
    store_relaxed(guarded, 0);
    return true;
}

SLOW bool slices_guarded(const struct superslab *s, const void *p)
{
    if ((const char *)p < s->base)
        return true;
    unsigned slice = slice_index(s, p);
    uint64_t last = load_acquire(&s->fenced) >> slice & 1 ? GUARD_LAST : 0;
    uint64_t page = (uintptr_t)p % SLICE / os_page;
    return ((load_acquire(&s->guarded[slice]) | last) >> page & 1) != 0;
}

void slices_lack(struct superslab *s, void *start, size_t n, size_t bytes)
{
    ASSERT(bytes <= n * SLICE);
    lock_take(&superslabs_lock);
    s->holed |= slice_mask(slice_index(s, start), n);
    s->lacking += bytes;
    lock_release(&superslabs_lock);
}

void slices_give(struct superslab *s, void *start, size_t n)
{
    ASSERT((uintptr_t)start % SLICE == 0 && map_bin(start) == BIN_FOREIGN);
    unsigned first = slice_index(s, start);
    lock_take(&superslabs_lock);
    ASSERT(n >= 1 && first + n <= s->slices);
    ASSERT((s->free & slice_mask(first, n)) == 0);
    s->free |= slice_mask(first, n);
    store_relaxed(&use.dirty_slices, use.dirty_slices + n);
    use_slices_less(n * SLICE);
    use_dirtied();
    store_relaxed(&counters.freed_slices, counters.freed_slices + n * SLICE);
    superslab_relist_larger(s, first, (unsigned)n);
    list_remove(&s->age);
    list_push(&superslabs_aged, &s->age);
    lock_release(&superslabs_lock);
}

bool slices_try_stop(void) { return lock_try(&superslabs_lock); }
void slices_go_on(void) { lock_release(&superslabs_lock); }

/* A block was handed out once there was a guard page behind it. */
static SLOW void *slice_written(const struct superslab *s, char *slice, size_t *most)
{
    unsigned index = slice_index(s, slice);
    bool all = !hardening.marks || load_relaxed(&s->unguardable) ||
               (load_relaxed(&s->fenced) >> index & 1) != 0;
    char *until = all ? slice + SLICE : slice + (highest_bit(s->guarded[index] | 1u)) * os_page;
    for (char *page = slice; page < until && *most >= os_page; page += os_page) {
        if (slices_guarded(s, page))
            continue;
        *most -= os_page;
        if (unlikely(!is_zero(page, os_page)))
            return page;
    }
    return NULL;
}

/* Also to those whose pages went back: they come again when something writes there. */
SLOW void *slices_written(size_t *most)
{
    ASSERT(lock_held(&superslabs_lock));
    void *found = NULL;
    for (uint64_t lists = superslabs_nonempty; lists != 0; lists &= lists - 1) {
        const struct list *head = &superslabs_by_longest[lowest_bit(lists)];
        for (const struct list *node = head->next; node != head; node = node->next) {
            const struct superslab *s = list_entry(node, struct superslab, node);
            uint64_t used = s->free & (s->touched | s->purged);
            for (; used != 0 && found == NULL; used &= used - 1)
                found = slice_written(s, s->base + lowest_bit(used) * SLICE, most);
        }
    }
    return found;
}

size_t slices_dirty(void) { return load_relaxed(&use.dirty_slices); }

size_t slices_idle(void)
{
    lock_take(&superslabs_lock);
    size_t idle = slices_dirty_low;
    slices_dirty_low = use.dirty_slices;
    lock_release(&superslabs_lock);
    return idle;
}

/* ---- back to the kernel ---- */

/* Gives the pages of slices back, one call for each run of them; returns those that are gone. */
static uint64_t slices_drop(const struct superslab *s, uint64_t slices)
{
    uint64_t gone = 0;
    for (uint64_t left = slices; left != 0;) {
        unsigned first = lowest_bit(left);
        uint64_t rest = ~(left >> first);
        unsigned n = rest == 0 ? SUPERSLAB_SLICES : lowest_bit(rest);
        uint64_t mask = slice_mask(first, n);
        if (os_purge(s->base + first * SLICE, n * SLICE))
            gone |= mask;
        left &= ~mask;
    }
    return gone;
}

/* The n highest of a set, or all of it: the lowest are taken first, and keep their pages. */
static uint64_t highest_of(uint64_t set, size_t n)
{
    for (size_t less = count_bits(set); less > n; less--)
        set &= set - 1;
    return set;
}

/* Gives back up to `most` slices of the superslab that was given slices longest ago; returns how
 * many, and without the lock. */
static size_t superslab_purge(struct superslab *s, size_t most)
{
    ASSERT(lock_held(&superslabs_lock));
    size_t had = count_bits(s->touched);
    if (superslab_empty(s) && had <= most) {
        superslab_withdraw(s);
        lock_release(&superslabs_lock);
        return superslab_end(s) ? had : 0;
    }
    uint64_t mask = highest_of(s->free & s->touched, most);
    slices_dirty_less(count_bits(mask));
    s->free &= ~mask;
    if ((s->free & s->touched) == 0)
        list_remove(&s->age);
    superslab_relist(s, longest_run(s->free));
    lock_release(&superslabs_lock);

    uint64_t gone = slices_drop(s, mask);

    lock_take(&superslabs_lock);
    s->touched &= ~gone;
    s->purged |= gone;
    if (s->holed & gone)
        slices_whole(s, gone);
    slices_mark_free(s, mask);
    use_let_go(count_bits(gone) * SLICE);
    lock_release(&superslabs_lock);
    return count_bits(gone);
}

size_t slices_purge(size_t most)
{
    ASSERT(lock_rank_held(RANK_PURGE));
    size_t done = 0;
    for (bool refused = false; done < most && !refused;) {
        lock_take(&superslabs_lock);
        if (list_empty(&superslabs_aged)) {
            lock_release(&superslabs_lock);
            break;
        }
        struct superslab *s = list_entry(superslabs_aged.prev, struct superslab, age);
        size_t had = count_bits(s->free & s->touched);
        size_t wanted = had < most - done ? had : most - done;
        if (s->huge != 0 && (!superslab_empty(s) || had > wanted)) {
            lock_release(&superslabs_lock);
            superslab_make_small(s);
            continue;
        }
        size_t gave = superslab_purge(s, wanted);
        refused = gave < wanted;
        done += gave;
    }
    add_relaxed(&counters.slices.purged, done * SLICE);
    return done;
}

/* An empty superslab, withdrawn; null when there is none. */
static struct superslab *superslab_spare(void)
{
    struct superslab *spare = NULL;
    lock_take(&superslabs_lock);
    for (uint64_t lists = superslabs_nonempty; lists != 0 && spare == NULL; lists &= lists - 1) {
        struct list *head = &superslabs_by_longest[lowest_bit(lists)];
        for (struct list *node = head->next; node != head && spare == NULL; node = node->next)
            if (superslab_empty(list_entry(node, struct superslab, node)))
                spare = list_entry(node, struct superslab, node);
    }
    if (spare != NULL)
        superslab_withdraw(spare);
    lock_release(&superslabs_lock);
    return spare;
}

size_t superslabs_release(void)
{
    ASSERT(lock_rank_held(RANK_PURGE));
    size_t slices = slices_purge(SIZE_MAX);
    struct superslab *s;
    for (size_t n = superslabs_mapped(); n > 0 && (s = superslab_spare()) != NULL; n--)
        superslab_end(s);
    return slices * SLICE;
}

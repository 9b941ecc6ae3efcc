#include "back/superslab.h"

#include "back/large.h"
#include "back/meta.h"
#include "base/atomic.h"
#include "base/counters.h"
#include "base/policy.h"
#include "os/lock.h"
#include "os/os.h"

static struct lock superslabs_lock = LOCK(SUPERSLABS);
static struct list by_longest[SUPERSLAB_SLICES]; /* [n - 1]: longest run n; lock: superslabs */
static struct list dense = {&dense, &dense};     /* no slice free, newest first; same lock */
static uint64_t nonempty;                        /* lists with members; lock: superslabs */
static size_t mapped, mapped_bytes;              /* atomic */
static struct list aged = {&aged, &aged};        /* with retained slices, newest first; same lock */
static size_t retained;     /* free slices that may hold pages; atomic; same lock */
static size_t retained_low; /* the fewest since slices_idle; same lock */

static uint64_t slice_mask(unsigned first, size_t n) { return low_bits((unsigned)n) << first; }

static unsigned slice_index(const struct superslab *s, const void *start)
{
    return (unsigned)((size_t)((const char *)start - s->base) / SLICE);
}

static void unlist(struct superslab *s)
{
    ASSERT(lock_held(&superslabs_lock));
    ASSERT(s->longest <= s->slices);
    list_remove(&s->node);
    if (s->longest == 0)
        return;
    if (list_empty(&by_longest[s->longest - 1]))
        nonempty &= ~((uint64_t)1 << (s->longest - 1));
}

static void dense_begin(struct superslab *s)
{
    ASSERT(lock_held(&superslabs_lock));
    ASSERT(s->free == 0 || s->longest == 0);
    s->dense_since = clock_now();
    list_push(&dense, &s->node);
}

static uint64_t all_slices(const struct superslab *s) { return low_bits(s->slices); }

static bool superslab_empty(const struct superslab *s) { return s->free == all_slices(s); }

/* Empty ones come last, so that they stay so. */
static void relist(struct superslab *s, unsigned longest)
{
    ASSERT(lock_held(&superslabs_lock));
    ASSERT(longest <= s->slices);
    bool empty = superslab_empty(s);
    if (longest == s->longest && !empty)
        return;
    unlist(s);
    s->longest = (uint8_t)longest;
    if (longest == 0) {
        dense_begin(s);
        return;
    }
    struct list *head = &by_longest[longest - 1];
    if (head->next == NULL)
        list_init(head);
    list_push(empty ? head->prev : head, &s->node);
    nonempty |= (uint64_t)1 << (longest - 1);
}

/* After n slices from `first` on were freed: only the run that they are in has grown. */
static void relist_larger(struct superslab *s, unsigned first, unsigned n)
{
    ASSERT(lock_held(&superslabs_lock));
    ASSERT(first + n <= s->slices);
    uint64_t taken_below = ~s->free & low_bits(first);
    uint64_t taken_above = ~s->free & ~low_bits(first + n);
    unsigned begin = taken_below == 0 ? 0 : highest_bit(taken_below) + 1;
    unsigned end = taken_above == 0 ? SUPERSLAB_SLICES : lowest_bit(taken_above);
    if (end - begin > s->longest || superslab_empty(s))
        relist(s, end - begin);
}

/* ---- where superslabs lie ---- */

#define SLOTS (WINDOW / SUPERSLAB)
#define SLOTS_OF_LEAF (((size_t)1 << MAP_LEAF_BITS) / SUPERSLAB)
#define SLOT_TRIES 16
#define FIRST_SLICES (SUPERSLAB_SLICES / 2)

/* In a small heap a huge page is much memory, and the TLB suffices. */
#define HUGE_FROM 16

/* A superslab is worth huge pages when it had no free slice while so many bytes were freed
 * elsewhere. */
#define DENSE_SPAN (32 * MiB)

static uint64_t slots_taken[SLOTS / 64]; /* lock: superslabs */
static size_t slots_full;                /* words before this one are full; same lock */

void superslabs_start(uint64_t random)
{
    /* In the first quarter of the window; slot 0 stays empty. Not near the end of a part that one
     * leaf of the map covers: a small heap needs one leaf, not by chance two. */
    size_t leaf = random % (SLOTS / 4 / SLOTS_OF_LEAF);
    size_t first = leaf * SLOTS_OF_LEAF + 1 + (random >> 32) % (SLOTS_OF_LEAF / 4 * 3);
    slots_full = first / 64;
    slots_taken[slots_full] = low_bits(first % 64);
}

/* Maps a superslab in the lowest free slot of the window. */
static char *superslab_map_in_window(size_t length)
{
    ASSERT(lock_held(&superslabs_lock));
    ASSERT(length <= SUPERSLAB);
    for (int tries = 0; tries < SLOT_TRIES; tries++) {
        while (slots_full < SLOTS / 64 && slots_taken[slots_full] == ~(uint64_t)0)
            slots_full++;
        if (slots_full == SLOTS / 64)
            return NULL;
        unsigned bit = lowest_bit(~slots_taken[slots_full]);
        bool occupied;
        uintptr_t address = WINDOW_BASE + (slots_full * 64 + bit) * SUPERSLAB;
        char *base = os_map_at(address, length, &occupied);
        if (base == NULL && !occupied)
            return NULL;
        slots_taken[slots_full] |= (uint64_t)1 << bit;
        if (base != NULL)
            return base;
    }
    return NULL;
}

static void superslab_unmapped(const char *base)
{
    ASSERT(lock_held(&superslabs_lock));
    ASSERT((uintptr_t)base % SUPERSLAB == 0);
    uintptr_t slot = ((uintptr_t)base - WINDOW_BASE) / SUPERSLAB;
    if (slot < SLOTS) {
        slots_taken[slot / 64] &= ~((uint64_t)1 << slot % 64);
        if (slot / 64 < slots_full)
            slots_full = slot / 64;
    }
}

/* ---- superslabs ---- */

/* Where the window can't be had (it is full, a kernel with less address space, a program that runs
 * under a tool), superslabs lie where the kernel puts them, and frees of their blocks take the slow
 * path. The first is half as long: a limit of address space counts all of it, and most processes
 * never need more. Where the kernel gives no whole one any more, shorter ones use what is left of a
 * limit; `least` slices are needed. Not while huge blocks are kept: there is none then, and whoever
 * asks has what is kept given back, and asks again. */
static struct superslab *superslab_new(size_t least)
{
    ASSERT(lock_held(&superslabs_lock));
    ASSERT(least >= 1 && least <= SUPERSLAB_SLICES);
    struct superslab *s = meta_take(sizeof *s);
    if (s == NULL)
        return NULL;
    char *base = NULL;
    size_t slices =
        superslabs_mapped() == 0 && least <= FIRST_SLICES ? FIRST_SLICES : SUPERSLAB_SLICES;
    for (;;) {
        base = superslab_map_in_window(slices * SLICE);
        if (base == NULL)
            base = os_map_aligned(slices * SLICE, SUPERSLAB);
        if (base != NULL || slices / 2 < least || large_kept() > 0)
            break;
        slices /= 2;
    }
    if (base == NULL || !map_cover(base, slices * SLICE)) {
        if (base != NULL && os_unmap(base, slices * SLICE))
            superslab_unmapped(base);
        meta_give(s, sizeof *s);
        return NULL;
    }
    os_name(base, slices * SLICE, "hakmem: blocks");
    /* With huge pages one touched page would cost 2 MiB, and perhaps the time to make room for it:
     * a heap of 512 MiB that had them from the start took half as long to fill, or five times. */
    os_small_pages(base, slices * SLICE, false);
    store_relaxed(&s->bin, BIN_LARGE);
    s->base = base;
    s->slices = (uint8_t)slices;
    s->free = all_slices(s);
    s->touched = 0;
    s->purged = 0;
    s->holed = 0;
    s->lacking = 0;
    s->huge = false;
    s->longest = 0;
    list_init(&s->age);
    list_init(&s->node);
    add_relaxed(&mapped, 1);
    add_relaxed(&mapped_bytes, slices * SLICE);
    count_refault(&counters.slices, slices * SLICE);
    relist(s, (unsigned)slices);
    return s;
}

static void mapped_less(const struct superslab *s)
{
    ASSERT(lock_held(&superslabs_lock));
    ASSERT(load_relaxed(&mapped) > 0 && load_relaxed(&mapped_bytes) >= s->slices * SLICE);
    sub_relaxed(&mapped, 1);
    sub_relaxed(&mapped_bytes, s->slices * SLICE);
}

/* Where n slices fit in s at the given alignment, as a set of first slices. */
static uint64_t places(const struct superslab *s, size_t n, size_t align)
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
    for (uint64_t lists = nonempty & ~low_bits((unsigned)n - 1); lists != 0; lists &= lists - 1) {
        struct list *head = &by_longest[lowest_bit(lists)];
        for (struct list *node = head->next, *next; node != head; node = next) {
            struct superslab *s = list_entry(node, struct superslab, node);
            next = node->next;
            *starts = places(s, n, align);
            if (*starts != 0)
                return s;
            relist(s, longest_run(s->free));
            if (align > 1 && --tries == 0)
                return NULL;
        }
    }
    return NULL;
}

static void retained_less(size_t n)
{
    ASSERT(lock_held(&superslabs_lock));
    ASSERT(n <= retained);
    store_relaxed(&retained, retained - n);
    if (retained < retained_low)
        retained_low = retained;
}

/* What is lacking in some of the slices that lack pages, which from now on don't; about, since it
 * is known of all of them together. */
static size_t slices_whole(struct superslab *s, uint64_t mask)
{
    ASSERT(lock_held(&superslabs_lock));
    ASSERT((s->holed & mask) != 0);
    uint64_t holed = s->holed & mask;
    size_t part = s->lacking * count_bits(holed) / count_bits(s->holed);
    s->holed &= ~holed;
    s->lacking -= part;
    return part;
}

/* The longest run may be shorter now: whoever looks for one finds that out (superslab_with). So a
 * run that is taken and given back by turns leaves the lists alone. */
static void slices_mark_taken(struct superslab *s, uint64_t mask, size_t n)
{
    ASSERT(lock_held(&superslabs_lock));
    ASSERT(n >= 1 && count_bits(mask) == n);
    ASSERT((s->free & mask) == mask);
    uint64_t paged = s->touched & mask;
    store_relaxed(&counters.slices.taken, counters.slices.taken + n * SLICE);
    retained_less(paged == mask ? n : count_bits(paged));
    if (s->purged & mask) {
        count_refault(&counters.slices, count_bits(s->purged & mask) * SLICE);
        s->purged &= ~mask;
    }
    if (s->holed & mask)
        count_refault(&counters.pages, slices_whole(s, mask));
    s->free &= ~mask;
    s->touched |= mask;
    if (s->free == 0)
        relist(s, 0);
}

void *slices_take(size_t n, size_t align, bool *zero, struct superslab **from)
{
    lock_take(&superslabs_lock);
    uint64_t starts;
    struct superslab *s = superslab_with(n, align, &starts);
    if (s == NULL) {
        s = superslab_new(n);
        starts = s != NULL ? places(s, n, align) : 0;
    }
    char *start = NULL;
    if (s != NULL) {
        unsigned first = lowest_bit(starts);
        uint64_t mask = slice_mask(first, n);
        *zero = (s->touched & mask) == 0;
        *from = s;
        slices_mark_taken(s, mask, n);
        start = s->base + first * SLICE;
    }
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
    if (fits)
        slices_mark_taken(s, mask, more);
    lock_release(&superslabs_lock);
    return fits;
}

/* After slices became free; those that may hold pages make it the newest of its kind. */
static void slices_mark_free(struct superslab *s, uint64_t mask)
{
    ASSERT(lock_held(&superslabs_lock));
    ASSERT((mask & ~all_slices(s)) == 0);
    ASSERT((s->free & mask) == 0);
    s->free |= mask;
    relist(s, longest_run(s->free));
    size_t pages = count_bits(s->touched & mask);
    if (pages == 0)
        return;
    store_relaxed(&retained, retained + pages);
    list_remove(&s->age);
    list_push(&aged, &s->age);
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
    ASSERT(n >= 1 && slice_index(s, start) + n <= s->slices);
    ASSERT((uintptr_t)start % SLICE == 0 && map_bin(start) == BIN_FOREIGN);
    unsigned first = slice_index(s, start);
    lock_take(&superslabs_lock);
    ASSERT((s->free & slice_mask(first, n)) == 0);
    s->free |= slice_mask(first, n);
    store_relaxed(&retained, retained + n);
    store_relaxed(&counters.freed_slices, counters.freed_slices + n * SLICE);
    relist_larger(s, first, (unsigned)n);
    list_remove(&s->age);
    list_push(&aged, &s->age);
    lock_release(&superslabs_lock);
}

/* ---- what goes back to the kernel ----
 *
 * No call into the kernel is made with the lock held: what is to go back is taken first, so that
 * nobody is handed it meanwhile. */

/* Takes an empty superslab out of everything. */
static void superslab_withdraw(struct superslab *s)
{
    ASSERT(lock_held(&superslabs_lock));
    ASSERT(superslab_empty(s));
    retained_less(count_bits(s->touched));
    s->free = 0;
    relist(s, 0);
    list_remove(&s->node);
    list_remove(&s->age);
}

/* Unmaps a superslab that was withdrawn. At its limit of mappings the kernel can refuse: then it
 * stays, and its pages go. Whether they have. */
static bool superslab_end(struct superslab *s)
{
    ASSERT(s->free == 0);
    bool unmapped = os_unmap(s->base, s->slices * SLICE);
    bool purged = !unmapped && os_purge(s->base, s->slices * SLICE);
    lock_take(&superslabs_lock);
    if (unmapped) {
        superslab_unmapped(s->base);
        mapped_less(s);
    } else {
        if (purged)
            s->touched = 0;
        slices_mark_free(s, all_slices(s));
    }
    lock_release(&superslabs_lock);
    if (unmapped)
        meta_give(s, sizeof *s);
    return unmapped || purged;
}

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

/* The n lowest of a set, or all of it. */
static uint64_t lowest_of(uint64_t set, size_t n)
{
    uint64_t chosen = 0;
    for (; n > 0 && set != 0; n--, set &= set - 1)
        chosen |= set & -set;
    return chosen;
}

/* Gives back up to `most` slices of the superslab that was given slices longest ago; returns how
 * many, and without the lock. */
static size_t superslab_purge(struct superslab *s, size_t most)
{
    ASSERT(lock_held(&superslabs_lock));
    if (superslab_empty(s)) {
        size_t had = count_bits(s->touched);
        superslab_withdraw(s);
        lock_release(&superslabs_lock);
        return superslab_end(s) ? had : 0;
    }
    bool was_huge = s->huge;
    s->huge = false;
    uint64_t mask = lowest_of(s->free & s->touched, most);
    retained_less(count_bits(mask));
    s->free &= ~mask;
    if ((s->free & s->touched) == 0)
        list_remove(&s->age);
    relist(s, longest_run(s->free));
    lock_release(&superslabs_lock);

    if (was_huge)
        os_small_pages(s->base, s->slices * SLICE, true);
    uint64_t gone = slices_drop(s, mask);

    lock_take(&superslabs_lock);
    s->touched &= ~gone;
    s->purged |= gone;
    if (s->holed & gone)
        slices_whole(s, gone);
    slices_mark_free(s, mask);
    lock_release(&superslabs_lock);
    return count_bits(gone);
}

size_t slices_purge(size_t most)
{
    ASSERT(lock_rank_held(RANK_UPKEEP));
    size_t done = 0;
    for (bool refused = false; done < most && !refused;) {
        lock_take(&superslabs_lock);
        if (list_empty(&aged)) {
            lock_release(&superslabs_lock);
            break;
        }
        struct superslab *s = list_entry(aged.prev, struct superslab, age);
        size_t had = count_bits(s->free & s->touched);
        size_t wanted = had < most - done ? had : most - done;
        size_t gave = superslab_purge(s, wanted);
        refused = gave < wanted;
        done += gave;
    }
    add_relaxed(&counters.slices.purged, done * SLICE);
    return done;
}

size_t slices_retained(void) { return load_relaxed(&retained); }

size_t slices_idle(void)
{
    lock_take(&superslabs_lock);
    size_t idle = retained_low;
    retained_low = retained;
    lock_release(&superslabs_lock);
    return idle;
}

/* ---- huge pages ---- */

void superslab_make_huge(void)
{
    ASSERT(lock_rank_held(RANK_UPKEEP));
    struct superslab *s = NULL;
    if (!policy.huge_pages || superslabs_mapped() < HUGE_FROM)
        return;
    lock_take(&superslabs_lock);
    if (!list_empty(&dense))
        s = list_entry(dense.prev, struct superslab, node);
    if (s != NULL && clock_now() - s->dense_since < DENSE_SPAN)
        s = NULL;
    if (s != NULL) {
        list_remove(&s->node);
        s->huge = true;
    }
    lock_release(&superslabs_lock);
    if (s != NULL)
        os_huge_pages(s->base, s->slices * SLICE);
}

void superslab_make_small(struct superslab *s)
{
    ASSERT(lock_rank_held(RANK_UPKEEP));
    lock_take(&superslabs_lock);
    bool was_huge = s->huge;
    s->huge = false;
    if (s->longest == 0) {
        list_remove(&s->node);
        dense_begin(s);
    }
    lock_release(&superslabs_lock);
    if (was_huge)
        os_small_pages(s->base, s->slices * SLICE, true);
}

/* An empty superslab, withdrawn; null when there is none. */
static struct superslab *superslab_spare(void)
{
    struct superslab *spare = NULL;
    lock_take(&superslabs_lock);
    for (uint64_t lists = nonempty; lists != 0 && spare == NULL; lists &= lists - 1) {
        struct list *head = &by_longest[lowest_bit(lists)];
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
    ASSERT(lock_rank_held(RANK_UPKEEP));
    size_t slices = slices_purge(SIZE_MAX);
    struct superslab *s;
    for (size_t n = superslabs_mapped(); n > 0 && (s = superslab_spare()) != NULL; n--)
        superslab_end(s);
    return slices * SLICE;
}

size_t superslabs_mapped(void) { return load_relaxed(&mapped); }
size_t superslabs_bytes(void) { return load_relaxed(&mapped_bytes); }

struct superslabs_inside superslabs_inside(void)
{
    ASSERT(lock_all_held());
    return (struct superslabs_inside){by_longest, &aged, &nonempty, &mapped, &retained};
}

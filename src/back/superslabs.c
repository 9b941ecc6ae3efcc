#include "back/superslabs.h"

#include "back/map.h"
#include "back/meta.h"
#include "back/use.h"
#include "base/atomic.h"
#include "base/defs.h"
#include "base/memory.h"
#include "base/policy.h"
#include "base/watch.h"
#include "learn/bring_in.h"
#include "learn/keep.h"
#include "os/os.h"

/* ---- their lists ---- */

struct lock superslabs_lock = LOCK(SUPERSLABS);
struct list superslabs_by_longest[SUPERSLAB_SLICES];
uint64_t superslabs_nonempty;
struct list superslabs_dense = {&superslabs_dense, &superslabs_dense};
struct list superslabs_aged = {&superslabs_aged, &superslabs_aged};
size_t slices_dirty_low;

static void unlist(struct superslab *s)
{
    ASSERT(lock_held(&superslabs_lock));
    ASSERT(s->longest <= s->slices);
    list_remove(&s->node);
    if (s->longest == 0)
        return;
    if (list_empty(&superslabs_by_longest[s->longest - 1]))
        superslabs_nonempty &= ~((uint64_t)1 << (s->longest - 1));
}

/* Empty ones come last, so that they stay so. */
void superslab_relist(struct superslab *s, unsigned longest)
{
    ASSERT(lock_held(&superslabs_lock));
    ASSERT(longest <= s->slices);
    bool empty = superslab_empty(s);
    if (longest == s->longest && !empty)
        return;
    unlist(s);
    s->longest = (uint8_t)longest;
    if (longest == 0) {
        list_push(&superslabs_dense, &s->node);
        return;
    }
    struct list *head = &superslabs_by_longest[longest - 1];
    if (head->next == NULL)
        list_init(head);
    list_push(empty ? head->prev : head, &s->node);
    superslabs_nonempty |= (uint64_t)1 << (longest - 1);
}

void superslab_relist_larger(struct superslab *s, unsigned first, unsigned n)
{
    ASSERT(lock_held(&superslabs_lock));
    ASSERT(first + n <= s->slices);
    uint64_t taken_below = ~s->free & low_bits(first);
    uint64_t taken_above = ~s->free & ~low_bits(first + n);
    unsigned begin = taken_below == 0 ? 0 : highest_bit(taken_below) + 1;
    unsigned end = taken_above == 0 ? SUPERSLAB_SLICES : lowest_bit(taken_above);
    if (end - begin > s->longest || superslab_empty(s))
        superslab_relist(s, end - begin);
    ASSERT(s->longest >= longest_run(s->free));
}

void slices_dirty_less(size_t n)
{
    ASSERT(lock_held(&superslabs_lock));
    ASSERT(n <= use.dirty_slices);
    store_relaxed(&use.dirty_slices, use.dirty_slices - n);
    if (use.dirty_slices < slices_dirty_low)
        slices_dirty_low = use.dirty_slices;
}

size_t slices_whole(struct superslab *s, uint64_t mask)
{
    ASSERT(lock_held(&superslabs_lock));
    ASSERT((s->holed & mask) != 0);
    uint64_t holed = s->holed & mask;
    size_t part = s->lacking * count_bits(holed) / count_bits(s->holed);
    s->holed &= ~holed;
    s->lacking -= part;
    return part;
}

void slices_mark_free(struct superslab *s, uint64_t mask)
{
    ASSERT(lock_held(&superslabs_lock));
    ASSERT((mask & ~all_slices(s)) == 0);
    ASSERT((s->free & mask) == 0);
    s->free |= mask;
    superslab_relist(s, longest_run(s->free));
    size_t pages = count_bits(s->touched & mask);
    if (pages == 0)
        return;
    store_relaxed(&use.dirty_slices, use.dirty_slices + pages);
    list_remove(&s->age);
    list_push(&superslabs_aged, &s->age);
}

/* ---- their addresses ---- */

#define WINDOW_SLOTS (WINDOW / SUPERSLAB)
#define WIDE_SLOTS (WIDE / SUPERSLAB)
#define SLOT_TRIES 16

/* Lock: superslabs; the first two are constant once the process has started. */
static struct {
    uintptr_t base;
    size_t slots;
    size_t first; /* where the heap begins: slots before it come last; then 0 */
    size_t full;  /* words of `taken` from the first to this one are full */
    size_t left;  /* slots that are free and were taken once */
    uint64_t chance;
    uint64_t taken[WIDE_SLOTS / 64];
    /* In a hardened heap: slots that were taken once. For each there are pages of the map, which
     * stay: a heap whose superslabs come and go for long is not to have all of them. */
    uint64_t used[WIDE_SLOTS / 64];
} range;

static uint64_t slot_bit(size_t slot) { return (uint64_t)1 << slot % 64; }

void slots_start(uint64_t random)
{
    range.base = hardening.shuffles ? WIDE_BASE : WINDOW_BASE;
    range.slots = hardening.shuffles ? WIDE_SLOTS : WINDOW_SLOTS;
    range.first = 1 + random % (range.slots - 1);
    range.full = range.first / 64;
    range.taken[range.full] = low_bits(range.first % 64);
    range.taken[0] |= 1; /* no block begins at the window's base */
    range.chance = random;
}

bool slots_hold(const void *p) { return (uintptr_t)p - range.base < range.slots * SUPERSLAB; }

uint64_t slots_random(void)
{
    ASSERT(lock_held(&superslabs_lock));
    range.chance += MIXED_STEP;
    return mixed(range.chance ^ hardening.secret);
}

/* Of a word's slots those that are taken or beside one that is. So in front of a superslab there is
 * nothing: what writes before its first block ends at once. */
static SLOW uint64_t near_taken(size_t word)
{
    uint64_t taken = range.taken[word];
    uint64_t below = word > 0 ? range.taken[word - 1] >> 63 : 0;
    uint64_t above = word + 1 < range.slots / 64 ? range.taken[word + 1] << 63 : 0;
    return taken | taken << 1 | taken >> 1 | below | above;
}

/* One of the free slots that were taken once: the first such behind one chosen by chance. */
static SLOW size_t slot_any_left(void)
{
    size_t from = slots_random() % range.slots;
    uint64_t before = low_bits(from % 64);
    for (size_t i = 0; i <= range.slots / 64; i++) {
        size_t word = (from / 64 + i) % (range.slots / 64);
        uint64_t left = range.used[word] & ~near_taken(word) & (i == 0 ? ~before : ~(uint64_t)0);
        if (left != 0)
            return word * 64 + lowest_bit(left);
    }
    return range.slots;
}

/* A free slot chosen by chance; range.slots if none is found. */
static SLOW size_t slot_any(void)
{
    size_t left = range.left >= SLOTS_LEFT ? slot_any_left() : range.slots;
    if (left != range.slots)
        return left;
    for (int tries = 0; tries < SLOT_TRIES; tries++) {
        size_t slot = slots_random() % range.slots;
        if (slot != 0 && !(near_taken(slot / 64) & slot_bit(slot)))
            return slot;
    }
    return range.slots;
}

static size_t slot_lowest(void)
{
    while (range.full < range.slots / 64 && range.taken[range.full] == ~(uint64_t)0)
        range.full++;
    return range.full == range.slots / 64 ? range.slots
                                          : range.full * 64 + lowest_bit(~range.taken[range.full]);
}

static SLOW void turn_to_first(void)
{
    range.taken[range.first / 64] &= ~low_bits(range.first % 64);
    range.taken[0] |= 1;
    range.first = range.full = 0;
}

/* The lowest free slot from where the heap begins, or else before that; in a hardened heap any.
 * range.slots if there is none. */
static size_t slot_next(void)
{
    size_t slot = unlikely(hardening.shuffles) ? slot_any() : range.slots;
    if (likely(slot == range.slots))
        slot = slot_lowest();
    if (unlikely(slot == range.slots) && range.first > 0) {
        turn_to_first();
        slot = slot_lowest();
    }
    return slot;
}

static SLOW void note_used(size_t slot)
{
    if (range.used[slot / 64] & slot_bit(slot))
        range.left--;
    range.used[slot / 64] |= slot_bit(slot);
}

char *slot_map(size_t length)
{
    ASSERT(lock_held(&superslabs_lock));
    ASSERT(length <= SUPERSLAB);
    for (int tries = 0; tries < SLOT_TRIES; tries++) {
        size_t slot = slot_next();
        if (slot == range.slots)
            return NULL;
        bool occupied;
        uintptr_t address = range.base + slot * SUPERSLAB;
        char *base = os_map_at(address, length, &occupied);
        if (base == NULL && !occupied)
            return NULL;
        range.taken[slot / 64] |= slot_bit(slot);
        if (unlikely(hardening.shuffles))
            note_used(slot);
        if (base != NULL)
            return base;
    }
    return NULL;
}

void slot_unmapped(const char *base)
{
    ASSERT(lock_held(&superslabs_lock));
    ASSERT((uintptr_t)base % SUPERSLAB == 0);
    uintptr_t slot = ((uintptr_t)base - range.base) / SUPERSLAB;
    if (slot < range.slots) {
        range.taken[slot / 64] &= ~slot_bit(slot);
        range.left += (range.used[slot / 64] & slot_bit(slot)) != 0;
        if (slot / 64 < range.full)
            range.full = slot / 64;
    }
}

/* ---- their begin and end ---- */

size_t superslabs_count;
static size_t mapped_bytes;       /* atomic; lock: superslabs */
static struct superslab *growing; /* the first, while it is short; lock: superslabs */

#define SUPERSLAB_NAME "hakmem: blocks"

#define FIRST_SLICES 4

/* If the window has no room (it is full, the kernel has less address space, or the program runs
 * under a tool), superslabs lie where the kernel puts them. The first begins short and grows where
 * it stands, because a limit of address space or of locked memory counts all of it, and many
 * processes never need more. If the kernel gives no whole superslab any more, shorter ones use the
 * rest of a limit; `least` slices are needed. While huge blocks are kept, none is made in that
 * case: the caller has them given back, and tries again. */
struct superslab *superslab_new(size_t least)
{
    ASSERT(lock_held(&superslabs_lock));
    ASSERT(least >= 1 && least <= SUPERSLAB_SLICES);
    struct superslab *s = meta_take(sizeof *s);
    if (s == NULL)
        return NULL;
    char *base = NULL;
    bool first = superslabs_mapped() == 0 && least <= FIRST_SLICES && !hardening.shuffles;
    size_t slices = first ? FIRST_SLICES : SUPERSLAB_SLICES;
    for (;;) {
        base = slot_map(slices * SLICE);
        if (base == NULL)
            base = os_map_aligned(slices * SLICE, SUPERSLAB);
        if (base != NULL || slices / 2 < least || load_relaxed(&use.dirty_huge) > 0)
            break;
        slices /= 2;
    }
    if (base == NULL || !map_cover(base, slices * SLICE)) {
        if (base != NULL && os_unmap(base, slices * SLICE))
            slot_unmapped(base);
        meta_give(s, sizeof *s);
        return NULL;
    }
    os_name(base, slices * SLICE, SUPERSLAB_NAME);
    s->base = base;
    s->slices = (uint8_t)slices;
    s->free = all_slices(s);
    s->touched = 0;
    s->fine = 0;
    s->purged = 0;
    s->holed = 0;
    s->lacking = 0;
    s->huge = 0;
    words_clear(s->guarded, sizeof s->guarded);
    s->unguardable = false;
    s->fenced = 0;
    s->longest = 0;
    list_init(&s->age);
    list_init(&s->node);
    add_relaxed(&superslabs_count, 1);
    add_relaxed(&mapped_bytes, slices * SLICE);
    count_refault(&counters.slices, slices * SLICE);
    superslab_relist(s, (unsigned)slices);
    growing = first ? s : growing;
    return s;
}

struct superslab *superslab_grow(size_t n)
{
    ASSERT(lock_held(&superslabs_lock));
    struct superslab *s = growing;
    if (s == NULL)
        return NULL;
    size_t step = larger(round_up(n, FIRST_SLICES), s->slices / FIRST_SLICES);
    size_t slices = smaller(s->slices + step, SUPERSLAB_SLICES);
    char *end = s->base + s->slices * SLICE;
    size_t more = (slices - s->slices) * SLICE;
    bool occupied;
    if (more < n * SLICE)
        return NULL;
    if (os_map_at((uintptr_t)end, more, &occupied) == NULL) {
        growing = NULL;
        return NULL;
    }
    os_name(end, more, SUPERSLAB_NAME);
    os_small_pages(end, more, false);
    s->free |= low_bits((unsigned)slices) & ~all_slices(s);
    s->slices = (uint8_t)slices;
    add_relaxed(&mapped_bytes, more);
    count_refault(&counters.slices, more);
    superslab_relist(s, (unsigned)slices); /* the longest run may be shorter */
    if (slices == SUPERSLAB_SLICES)
        growing = NULL;
    return s;
}

void superslab_withdraw(struct superslab *s)
{
    ASSERT(lock_held(&superslabs_lock));
    ASSERT(superslab_empty(s));
    slices_dirty_less(count_bits(s->touched));
    if (s == growing)
        growing = NULL;
    s->free = 0;
    superslab_relist(s, 0);
    list_remove(&s->node);
    list_remove(&s->age);
}

bool superslab_end(struct superslab *s)
{
    ASSERT(s->free == 0);
    bool unmapped = os_unmap(s->base, s->slices * SLICE);
    bool purged = !unmapped && os_purge(s->base, s->slices * SLICE);
    lock_take(&superslabs_lock);
    if (unmapped || purged)
        use_let_go(count_bits(s->touched) * SLICE);
    if (unmapped) {
        slot_unmapped(s->base);
        ASSERT(superslabs_mapped() > 0 && superslabs_bytes() >= s->slices * SLICE);
        sub_relaxed(&superslabs_count, 1);
        sub_relaxed(&mapped_bytes, s->slices * SLICE);
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

size_t superslabs_mapped(void) { return load_relaxed(&superslabs_count); }
size_t superslabs_bytes(void) { return load_relaxed(&mapped_bytes); }

bool superslabs_may_spread(void)
{
    ASSERT(lock_held(&superslabs_lock));
    return keep_apart(load_relaxed(&limits.space), superslabs_bytes() + SUPERSLAB);
}

const struct watch_superslabs watch_superslabs = {
    .bytes = sizeof watch_superslabs,
    .lists = SUPERSLAB_SLICES,
    .size = sizeof(struct superslab),
    .node_at = offsetof(struct superslab, node),
    .base_at = offsetof(struct superslab, base),
    .free_at = offsetof(struct superslab, free),
    .touched_at = offsetof(struct superslab, touched),
    .slices_at = offsetof(struct superslab, slices),
    .by_longest = superslabs_by_longest,
    .dense = &superslabs_dense,
};

/* ---- their huge pages ---- */

static size_t to_skip;                         /* superslabs until the next try; lock: superslabs */
static size_t next_skip = LAW_HUGE_SKIP_LEAST; /* after a slow one; same lock */

/* The pages that a huge page brings before they are used must be no more than may be kept. With a
 * hard limit there are none. */
static bool heap_grows_fine(void)
{
    ASSERT(lock_held(&superslabs_lock));
    if (!huge_starts_from(superslabs_mapped()) || list_empty(&superslabs_dense) ||
        load_relaxed(&limits.hard) != SIZE_MAX || !use_keeps_little(SUPERSLAB))
        return false;
    const struct superslab *last = list_entry(superslabs_dense.next, struct superslab, node);
    return huge_starts_after(count_bits(last->fine & ~last->free), SUPERSLAB_SLICES);
}

void superslab_starts(struct superslab *s, bool fine)
{
    ASSERT(lock_held(&superslabs_lock));
    if (policy.huge_pages && fine && heap_grows_fine()) {
        if (to_skip > 0)
            to_skip--;
        else if (os_huge_pages(s->base, s->slices * SLICE))
            s->huge = all_slices(s);
    }
    if (s->huge == 0)
        os_small_pages(s->base, s->slices * SLICE, false);
}

#define HUGE_PAGE_SLICES 32

/* In a huge page of s. */
static bool first_touch_is_slow(struct superslab *s, unsigned first)
{
    size_t began = os_nanoseconds();
    *(volatile char *)(s->base + first * SLICE) = 0;
    bool slow = huge_touch_is_slow(os_nanoseconds() - began);
    if (slow)
        to_skip = next_skip;
    next_skip = huge_skip_next(next_skip, slow);
    return slow;
}

/* What was not touched is to have small pages after all. */
static void keep_small(struct superslab *s, unsigned first)
{
    uint64_t page = slice_mask(first, HUGE_PAGE_SLICES) & s->huge;
    if (page == 0 || (s->touched & page) != 0)
        return;
    s->huge &= ~page;
    os_small_pages(s->base + first * SLICE, count_bits(page) * SLICE, true);
}

void superslab_touched(struct superslab *s, uint64_t mask)
{
    ASSERT(lock_held(&superslabs_lock));
    bool slow = false;
    for (unsigned first = 0; first < SUPERSLAB_SLICES; first += HUGE_PAGE_SLICES) {
        uint64_t page = slice_mask(first, HUGE_PAGE_SLICES) & s->huge;
        if ((page & mask) == 0)
            continue;
        if ((page & s->touched & ~mask) == 0)
            slow |= first_touch_is_slow(s, first);
        uint64_t beside = page & s->free & ~s->touched & ~s->purged;
        if (beside == 0)
            continue;
        use_hold_anyway(count_bits(beside) * SLICE);
        s->touched |= beside;
        s->free &= ~beside;
        slices_mark_free(s, beside);
    }
    for (unsigned first = 0; slow && first < SUPERSLAB_SLICES; first += HUGE_PAGE_SLICES)
        keep_small(s, first);
}

void superslab_make_small(struct superslab *s)
{
    ASSERT(lock_rank_held(RANK_PURGE));
    lock_take(&superslabs_lock);
    bool was_huge = s->huge != 0;
    s->huge = 0;
    lock_release(&superslabs_lock);
    if (was_huge)
        os_small_pages(s->base, s->slices * SLICE, true);
}

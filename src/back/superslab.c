#include "back/superslab.h"

#include "back/meta.h"
#include "base/atomic.h"
#include "base/policy.h"
#include "os/os.h"

static struct lock superslabs_lock;
static struct list by_longest[SUPERSLAB_SLICES]; /* [n - 1]: longest run n; lock: superslabs */
static uint64_t nonempty;                        /* lists with members; lock: superslabs */
static size_t mapped;                            /* atomic */
static struct list aged = {&aged, &aged};        /* with retained slices, newest first; same lock */
static size_t retained;                          /* free slices that may hold pages; same lock */

static uint64_t slice_mask(unsigned first, size_t n) { return low_bits((unsigned)n) << first; }

static unsigned slice_index(const struct superslab *s, const void *start)
{
    return (unsigned)((size_t)((const char *)start - s->base) / SLICE);
}

static void unlist(struct superslab *s)
{
    if (s->longest == 0)
        return;
    list_remove(&s->node);
    if (list_empty(&by_longest[s->longest - 1]))
        nonempty &= ~((uint64_t)1 << (s->longest - 1));
}

static void relist(struct superslab *s, unsigned longest)
{
    if (longest == s->longest)
        return;
    unlist(s);
    s->longest = (uint8_t)longest;
    if (longest == 0)
        return;
    struct list *head = &by_longest[longest - 1];
    if (head->next == NULL)
        list_init(head);
    list_push(head, &s->node);
    nonempty |= (uint64_t)1 << (longest - 1);
}

/* After slices were taken. Mostly a run as long as the longest is still there. */
static void relist_smaller(struct superslab *s)
{
    if (s->longest != 0 && run_starts(s->free, s->longest) == 0)
        relist(s, longest_run(s->free));
}

/* After n slices from `first` on were freed: only the run that they are in has grown. */
static void relist_larger(struct superslab *s, unsigned first, unsigned n)
{
    uint64_t taken_below = ~s->free & low_bits(first);
    uint64_t taken_above = ~s->free & ~low_bits(first + n);
    unsigned begin = taken_below == 0 ? 0 : highest_bit(taken_below) + 1;
    unsigned end = taken_above == 0 ? SUPERSLAB_SLICES : lowest_bit(taken_above);
    if (end - begin > s->longest)
        relist(s, end - begin);
}

/* ---- where superslabs lie ---- */

#define SLOTS (WINDOW / SUPERSLAB)
#define SLOT_TRIES 16

static uint64_t slots_taken[SLOTS / 64]; /* lock: superslabs */
static size_t slots_full;                /* words before this one are full; same lock */

void superslabs_start(uint64_t random)
{
    /* In the first half of the window; slot 0 stays empty. */
    size_t first = 1 + random % (SLOTS / 2);
    slots_full = first / 64;
    slots_taken[slots_full] = low_bits(first % 64);
}

/* Maps a superslab in the lowest free slot of the window. */
static char *superslab_map_in_window(void)
{
    for (int tries = 0; tries < SLOT_TRIES; tries++) {
        while (slots_full < SLOTS / 64 && slots_taken[slots_full] == ~(uint64_t)0)
            slots_full++;
        if (slots_full == SLOTS / 64)
            return NULL;
        unsigned bit = lowest_bit(~slots_taken[slots_full]);
        bool occupied;
        uintptr_t address = WINDOW_BASE + (slots_full * 64 + bit) * SUPERSLAB;
        char *base = os_map_at(address, SUPERSLAB, &occupied);
        if (base == NULL && !occupied)
            return NULL;
        slots_taken[slots_full] |= (uint64_t)1 << bit;
        if (base != NULL)
            return base;
    }
    return NULL;
}

/* Where the window can't be had (it is full, a kernel with less address space, a program that runs
 * under a tool), superslabs lie where the kernel puts them, and their blocks take the door. */
static char *superslab_map_anywhere(void)
{
    char *base = os_map_aligned(SUPERSLAB, SUPERSLAB);
    if (base != NULL && (uintptr_t)base - WINDOW_BASE >= WINDOW)
        __atomic_store_n(&window_left, true, __ATOMIC_SEQ_CST);
    return base;
}

static void superslab_unmapped(const char *base)
{
    uintptr_t slot = ((uintptr_t)base - WINDOW_BASE) / SUPERSLAB;
    if (slot < SLOTS) {
        slots_taken[slot / 64] &= ~((uint64_t)1 << slot % 64);
        if (slot / 64 < slots_full)
            slots_full = slot / 64;
    }
}

/* ---- superslabs ---- */

static struct superslab *superslab_new(void)
{
    struct superslab *s = meta_take(sizeof *s);
    if (s == NULL)
        return NULL;
    char *base = superslab_map_in_window();
    if (base == NULL)
        base = superslab_map_anywhere();
    if (base == NULL || !map_cover(base, SUPERSLAB)) {
        if (base != NULL && os_unmap(base, SUPERSLAB))
            superslab_unmapped(base);
        meta_give(s, sizeof *s);
        return NULL;
    }
    os_name(base, SUPERSLAB, "hakmem: blocks");
    /* With huge pages one touched page would cost 2 MiB. */
    os_small_pages(base, SUPERSLAB);
    s->base = base;
    s->free = ~(uint64_t)0;
    s->touched = 0;
    s->longest = 0;
    list_init(&s->age);
    add_relaxed(&mapped, 1);
    relist(s, SUPERSLAB_SLICES);
    return s;
}

/* Where n slices fit in s at the given alignment, as a set of first slices. */
static uint64_t places(const struct superslab *s, size_t n, size_t align)
{
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

static struct superslab *superslab_with(size_t n, size_t align)
{
    int tries = ALIGNED_TRIES;
    for (uint64_t lists = nonempty & ~low_bits((unsigned)n - 1); lists != 0; lists &= lists - 1) {
        struct list *head = &by_longest[lowest_bit(lists)];
        for (struct list *node = head->next; node != head; node = node->next) {
            struct superslab *s = list_entry(node, struct superslab, node);
            if (align == 1 || places(s, n, align) != 0)
                return s;
            if (--tries == 0)
                return NULL;
        }
    }
    return NULL;
}

static void slices_mark_taken(struct superslab *s, uint64_t mask)
{
    retained -= count_bits(s->touched & mask);
    s->free &= ~mask;
    s->touched |= mask;
    relist_smaller(s);
}

void *slices_take(size_t n, size_t align, bool *zero, struct superslab **from)
{
    lock_take(&superslabs_lock);
    struct superslab *s = superslab_with(n, align);
    if (s == NULL)
        s = superslab_new();
    char *start = NULL;
    if (s != NULL) {
        unsigned first = lowest_bit(places(s, n, align));
        uint64_t mask = slice_mask(first, n);
        *zero = (s->touched & mask) == 0;
        *from = s;
        slices_mark_taken(s, mask);
        start = s->base + first * SLICE;
    }
    lock_release(&superslabs_lock);
    return start;
}

bool slices_extend(struct superslab *s, void *start, size_t n, size_t more)
{
    unsigned first = slice_index(s, start) + (unsigned)n;
    if (first + more > SUPERSLAB_SLICES)
        return false;
    uint64_t mask = slice_mask(first, more);
    lock_take(&superslabs_lock);
    bool fits = (s->free & mask) == mask;
    if (fits)
        slices_mark_taken(s, mask);
    lock_release(&superslabs_lock);
    return fits;
}

/* Gives the pages of free slices back, one call for each run of them. */
static void superslab_purge(struct superslab *s, uint64_t slices)
{
    uint64_t left = s->free & s->touched & slices;
    while (left != 0) {
        unsigned first = lowest_bit(left);
        uint64_t rest = ~(left >> first);
        unsigned n = rest == 0 ? SUPERSLAB_SLICES : lowest_bit(rest);
        uint64_t mask = slice_mask(first, n);
        if (os_purge(s->base + first * SLICE, n * SLICE)) {
            s->touched &= ~mask;
            retained -= n;
        }
        left &= ~mask;
    }
}

/* An empty superslab goes back whole; false when the kernel refuses. */
static bool superslab_end(struct superslab *s)
{
    if (!os_unmap(s->base, SUPERSLAB))
        return false;
    retained -= count_bits(s->touched);
    superslab_unmapped(s->base);
    sub_relaxed(&mapped, 1);
    unlist(s);
    list_remove(&s->age);
    meta_give(s, sizeof *s);
    return true;
}

/* Brings what is retained down to `budget` slices, the oldest first; `keep` slices of `newest`
 * stay, since who has just given them mostly wants them back. */
static void retained_trim(size_t budget, struct superslab *newest, uint64_t keep)
{
    while (retained > budget && !list_empty(&aged)) {
        struct superslab *s = list_entry(aged.prev, struct superslab, age);
        if (s == newest) { /* the only one left */
            superslab_purge(s, ~keep);
            return;
        }
        if (s->free == ~(uint64_t)0 && superslab_end(s))
            continue;
        list_remove(&s->age);
        superslab_purge(s, ~(uint64_t)0);
    }
}

void slices_give(struct superslab *s, void *start, size_t n)
{
    unsigned first = slice_index(s, start);
    uint64_t mask = slice_mask(first, n);
    lock_take(&superslabs_lock);
    s->free |= mask;
    retained += n;
    relist_larger(s, first, (unsigned)n);
    list_remove(&s->age);
    list_push(&aged, &s->age);
    if (retained > policy.retain_slices)
        retained_trim(policy.retain_slices / 2, s, mask);
    lock_release(&superslabs_lock);
}

void superslabs_release(void)
{
    lock_take(&superslabs_lock);
    retained_trim(0, NULL, 0);
    for (struct list *head = &by_longest[SUPERSLAB_SLICES - 1], *node = head->next, *next;
         node != NULL && node != head; node = next) {
        next = node->next;
        superslab_end(list_entry(node, struct superslab, node));
    }
    lock_release(&superslabs_lock);
}

size_t superslabs_mapped(void) { return load_relaxed(&mapped); }

void superslabs_fork_lock(void) { lock_take(&superslabs_lock); }
void superslabs_fork_unlock(void) { lock_release(&superslabs_lock); }

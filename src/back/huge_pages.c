#include "back/huge_pages.h"

#include "back/superslab_lists.h"
#include "back/superslabs.h"
#include "back/use.h"
#include "base/atomic.h"
#include "base/counters.h"
#include "base/policy.h"
#include "os/os.h"

/* In a small heap a huge page is much memory, and the TLB suffices. */
#define HUGE_FROM 16

/* A superslab is worth huge pages when it had no free slice while so many bytes were freed
 * elsewhere. */
#define DENSE_BYTES (32 * MiB)

/* ---- superslabs that start with huge pages ----
 *
 * A heap that grows by small blocks touches all its pages, and a huge page costs one fault instead
 * of 512. But only where the kernel has one at hand: where it must make room, or asks a host for
 * the memory, a heap took five times as long to fill. So the first touch of each is timed, and
 * after a slow one many superslabs start with small pages. */

#define START_FROM 5 /* superslabs, the new one included */

/* The superslab that was filled last was in use by small blocks but for an eighth. */
#define FINE_SLICES (SUPERSLAB_SLICES - SUPERSLAB_SLICES / 8)

/* A huge page at hand took 0.2 ms, 512 small faults 1.3 ms, a huge page that the kernel had to make
 * room for 7 ms, and one that a host had taken away 30 ms. */
#define SLOW_NS 1000000
#define SKIP_LEAST 32
#define SKIP_MOST 1024

static size_t to_skip;                /* superslabs until the next try; lock: superslabs */
static size_t next_skip = SKIP_LEAST; /* after a slow one; same lock */

/* And what its pages have too early is no more than may be kept. */
static bool heap_grows_fine(void)
{
    ASSERT(lock_held(&superslabs_lock));
    if (superslabs_mapped() < START_FROM || list_empty(&superslabs_dense) ||
        use_excess_with(SUPERSLAB) > 0)
        return false;
    const struct superslab *last = list_entry(superslabs_dense.next, struct superslab, node);
    return count_bits(last->fine & ~last->free) >= FINE_SLICES;
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
    if (os_nanoseconds() - began < SLOW_NS) {
        next_skip = larger(next_skip / 2, SKIP_LEAST);
        return false;
    }
    to_skip = next_skip;
    next_skip = smaller(next_skip * 2, SKIP_MOST);
    return true;
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
        s->touched |= beside;
        s->free &= ~beside;
        slices_mark_free(s, beside);
    }
    for (unsigned first = 0; slow && first < SUPERSLAB_SLICES; first += HUGE_PAGE_SLICES)
        keep_small(s, first);
}

/* ---- superslabs that stay full ---- */

void superslab_make_huge(void)
{
    ASSERT(lock_rank_held(RANK_PURGE));
    struct superslab *s = NULL;
    if (!policy.huge_pages || superslabs_mapped() < HUGE_FROM)
        return;
    lock_take(&superslabs_lock);
    if (!list_empty(&superslabs_dense))
        s = list_entry(superslabs_dense.prev, struct superslab, node);
    if (s != NULL && clock_now() - s->dense_since < DENSE_BYTES)
        s = NULL;
    bool ask = s != NULL && s->huge != all_slices(s);
    if (s != NULL) {
        list_remove(&s->node);
        s->huge = all_slices(s);
    }
    lock_release(&superslabs_lock);
    if (ask)
        os_huge_pages(s->base, s->slices * SLICE);
}

void superslab_make_small(struct superslab *s)
{
    ASSERT(lock_rank_held(RANK_PURGE));
    lock_take(&superslabs_lock);
    bool was_huge = s->huge != 0;
    s->huge = 0;
    if (s->longest == 0) {
        list_remove(&s->node);
        superslab_enlist_dense(s);
    }
    lock_release(&superslabs_lock);
    if (was_huge)
        os_small_pages(s->base, s->slices * SLICE, true);
}

#include "back/huge_pages.h"

#include "back/superslabs.h"
#include "back/use.h"
#include "base/atomic.h"
#include "base/counters.h"
#include "base/policy.h"
#include "learn/bring_in.h"
#include "os/os.h"

static size_t to_skip;                         /* superslabs until the next try; lock: superslabs */
static size_t next_skip = LAW_HUGE_SKIP_LEAST; /* after a slow one; same lock */

/* The pages that a huge page brings before they are used must be no more than may be kept. With a
 * hard limit there are none. */
static bool heap_grows_fine(void)
{
    ASSERT(lock_held(&superslabs_lock));
    if (!huge_starts_from(superslabs_mapped()) || list_empty(&superslabs_dense) ||
        load_relaxed(&limits.hard) != SIZE_MAX || use_excess_with(SUPERSLAB) > 0)
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

#include "back/slices_purge.h"

#include "back/huge_pages.h"
#include "back/superslab_lists.h"
#include "back/superslabs.h"
#include "back/use.h"
#include "base/atomic.h"
#include "base/counters.h"
#include "os/os.h"

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

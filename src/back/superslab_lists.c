#include "back/superslab_lists.h"

#include "back/use.h"
#include "base/atomic.h"
#include "base/counters.h"

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

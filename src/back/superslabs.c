#include "back/superslabs.h"

#include "back/map.h"
#include "back/meta.h"
#include "back/slots.h"
#include "back/superslab_lists.h"
#include "back/use.h"
#include "base/atomic.h"
#include "base/copy.h"
#include "base/counters.h"
#include "base/hardening.h"
#include "base/watch.h"
#include "os/os.h"

static size_t mapped, mapped_bytes; /* atomic; lock: superslabs */
static struct superslab *growing;   /* the first, while it is short; lock: superslabs */

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
    add_relaxed(&mapped, 1);
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

static void mapped_less(const struct superslab *s)
{
    ASSERT(lock_held(&superslabs_lock));
    ASSERT(load_relaxed(&mapped) > 0 && load_relaxed(&mapped_bytes) >= s->slices * SLICE);
    sub_relaxed(&mapped, 1);
    sub_relaxed(&mapped_bytes, s->slices * SLICE);
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

size_t superslabs_mapped(void) { return load_relaxed(&mapped); }
size_t superslabs_bytes(void) { return load_relaxed(&mapped_bytes); }

struct superslabs_inside superslabs_inside(void)
{
    ASSERT(lock_all_held());
    return (struct superslabs_inside){superslabs_by_longest, &superslabs_aged, &superslabs_nonempty,
                                      &mapped, &use.dirty_slices};
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

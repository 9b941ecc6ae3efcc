#include "back/huge_pages.h"

#include "back/superslab_lists.h"
#include "back/superslabs.h"
#include "base/counters.h"
#include "base/policy.h"
#include "os/os.h"

/* In a small heap a huge page is much memory, and the TLB suffices. */
#define HUGE_FROM 16

/* A superslab is worth huge pages when it had no free slice while so many bytes were freed
 * elsewhere. */
#define DENSE_BYTES (32 * MiB)

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
    ASSERT(lock_rank_held(RANK_PURGE));
    lock_take(&superslabs_lock);
    bool was_huge = s->huge;
    s->huge = false;
    if (s->longest == 0) {
        list_remove(&s->node);
        superslab_enlist_dense(s);
    }
    lock_release(&superslabs_lock);
    if (was_huge)
        os_small_pages(s->base, s->slices * SLICE, true);
}

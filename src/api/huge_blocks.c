#include "api/huge_blocks.h"

#include "api/sampled.h"
#include "back/huge.h"
#include "front/cacheless.h"
#include "front/deferred.h"
#include "life/life.h"
#include "life/scavenger.h"
#include "life/upkeep.h"
#include "os/lock.h"
#include "profile/rate.h"
#include "profile/samples.h"
#include "watch/report.h"

SLOW void *huge_take_inside(size_t n, size_t align, bool *zero)
{
    struct cache *cache = thread_cache(); /* the process's start, too */
    if (likely(cache != NULL))
        scavenger_note(cache);
    if (unlikely(!lock_enter(cache_lock_of(cache))))
        return not_entered();
    struct finding found = {MISUSE_NONE, NULL};
    void *p = huge_take(n, align, zero, &found);
    lock_release(cache_lock_of(cache));
    make_room(n);
    report_late(found, NULL);
    return p;
}

SLOW struct finding huge_give_inside(void *p)
{
    struct cache *cache = thread_cache();
    const struct huge *h = huge_at(p);
    size_t own = h != NULL ? h->length : 0;
    if (!lock_enter(cache_lock_of(cache)))
        return deferred_put(p);
    if (unlikely(load_relaxed(&profile_used)))
        samples_forget(p);
    enum misuse what = huge_give(p);
    lock_release(cache_lock_of(cache));
    look_after_memory(own);
    return (struct finding){what, p};
}

SLOW void *huge_resize_inside(void *p, size_t n)
{
    struct cache *cache = thread_cache();
    if (!lock_enter(cache_lock_of(cache)))
        return NULL;
    /* Before the address may be another's. Where the block stays as it is, it is freed soon. */
    if (unlikely(load_relaxed(&profile_used)))
        samples_forget(p);
    void *same = huge_resize(p, n);
    lock_release(cache_lock_of(cache));
    make_room(n);
    if (unlikely(load_relaxed(&profile_on)) && same != NULL)
        sampled_count_huge(same, n);
    return same;
}

/* The slow path's door into the heap. Who enters has the calling thread's cache, which is made if
 * it has none yet, and the lock that goes with it; who leaves releases that, gives back what lies
 * idle, and reports what came to light of other blocks. What is called in between knows nothing of
 * forks, of a thread's start, or of memory that goes back.
 *
 * The door is shut while a fork has everything and lasts: then the reserve serves (back/reserve.h),
 * and frees wait (front/deferred.h). A call that a stack can serve does not come here. */
#ifndef HAKMEM_API_DOOR_H
#define HAKMEM_API_DOOR_H

#include "base/misuse.h"
#include "front/cache.h"
#include "front/large.h"
#include "front/owners.h"
#include "front/registry.h"
#include "life/life.h"
#include "life/upkeep.h"
#include "os/lock.h"
#include "watch/report.h"

struct door {
    struct cache *cache;  /* the calling thread's; null if it has none */
    struct finding found; /* of other blocks than the call's own */
};

/* False where it is shut. */
static inline bool enter(struct door *door)
{
    door->cache = thread_cache();
    door->found = (struct finding){MISUSE_NONE, NULL};
    if (unlikely(!lock_enter(cache_lock_of(door->cache))))
        return false;
    if (likely(door->cache != NULL))
        large_tell(door->cache);
    return true;
}

/* The same to take a block, which says that the thread is there: what then starts, as the
 * scavenger, calls libc, and that allocates. */
static inline bool enter_to_take(struct door *door)
{
    struct cache *cache = thread_cache();
    if (likely(cache != NULL)) {
        note_taker(cache);
        if (unlikely(load_relaxed(&registry_has_orphans)))
            orphan_take_in();
    }
    return enter(door);
}

static inline void leave(struct door *door) { lock_release(cache_lock_of(door->cache)); }

/* After a block was taken, of `own` bytes if it is huge. */
static inline void leave_taken(struct door *door, size_t own)
{
    leave(door);
    make_room(own);
    report_late(door->found, NULL);
}

/* After one was freed. */
static inline void leave_given(struct door *door, size_t own)
{
    leave(door);
    look_after(door->cache, own);
}

#endif

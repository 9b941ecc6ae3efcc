/* The slow path's way into the heap: which of the two kinds of heap there is, and the door. */
#ifndef HAKMEM_API_DOOR_H
#define HAKMEM_API_DOOR_H

#include "base/misuse.h"
#include "base/policy.h"
#include "front/cache.h"
#include "front/large.h"
#include "front/owners.h"
#include "life/life.h"
#include "life/profiling.h"
#include "life/purge.h"
#include "life/scavenger.h"
#include "os/lock.h"
#include "report/report.h"

/* ---- the two kinds of heap ----
 *
 * Which one a process has is known at its start and never changes: `plain`, whose blocks of classes
 * pass through the threads' stacks, or `hardened` (front/hardened.h). What differs is in these two
 * tables and nowhere else in the slow path. Recordings, profiles and guards are no kinds: they
 * stand around the heap that there is, and come and go. */

struct kind {
    bool slices; /* blocks of whole slices; without, they are mappings of their own */

    /* malloc without a sample; null without memory, errno set. */
    void *(*malloc)(size_t n);

    /* A block of the class, ready for the program; null without memory, or not_entered(). */
    void *(*take)(unsigned cls);

    /* One that comes straight from a slab becomes so. */
    void (*ready)(void *p, unsigned cls);

    /* free of p, where the thread's cache alone can serve it; else false, and nothing is done. */
    bool (*free)(void *p, const void *caller);

    /* The free of an address in a slab of the stack's class; `past`: not into a stack. */
    struct finding (*give)(unsigned stack, void *p, bool past);

    /* The same of an address in a sampled slab, while a fork holds the heap. */
    struct finding (*give_later)(void *p);

    /* Whether realloc leaves a block of so many usable bytes where it is. */
    bool (*stays)(size_t n, size_t usable);

    /* What is wrong with an address in a slab as one of a block in use; a block begins there. */
    enum misuse (*look)(const void *p, unsigned bin);

    /* The fewest bytes that a block with so many usable ones may have been allocated or reallocated
     * with. */
    size_t (*least)(const void *p, unsigned bin, size_t usable);
};

extern const struct kind plain HIDDEN;
extern const struct kind hardened_kind HIDDEN;

FAST const struct kind *kind(void) { return hardened() ? &hardened_kind : &plain; }

/* ---- the door ----
 *
 * Who enters has the calling thread's cache, which is made if it has none yet, and the lock that
 * goes with it; who leaves releases that, gives back what lies idle, and reports what came to light
 * of other blocks. What is called in between knows nothing of forks, of a thread's start, or of
 * memory that goes back.
 *
 * The door is shut while a fork has everything and lasts: then the reserve serves (back/reserve.h),
 * and frees wait (front/owners.h). A call that a stack can serve does not come here. */

struct door {
    struct cache *cache;  /* the calling thread's; null if it has none */
    struct finding found; /* of other blocks than the call's own */
};

/* What a call does for memory that lies idle, after its own work and without locks. */
void give_memory_back(bool freed, size_t own);

/* After memory was freed by the calling thread, which has this cache or none. `own`: bytes of the
 * call's own block, if that is large or huge. */
void look_after(struct cache *cache, size_t own);

/* False where it is shut. */
static inline bool enter(struct door *door)
{
    door->cache = thread_cache();
    door->found = (struct finding){MISUSE_NONE, NULL};
    if (unlikely(!lock_enter(cache_lock_of(door->cache))))
        return false;
    if (likely(door->cache != NULL))
        door->found = stacks_catch_up(door->cache);
    return true;
}

/* What a thread that takes a block by the slow path has to note before. */
static inline void note_taker(struct cache *cache)
{
    scavenger_note(cache);
    if (unlikely(load_relaxed(&cache->mine) == NULL))
        thread_ask_for_end(cache);
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

static inline void leave(struct door *door)
{
    lock_release(cache_lock_of(door->cache));
    if (unlikely(door->found.what != MISUSE_NONE))
        report_late(door->found, NULL);
}

/* After a block was taken, of `own` bytes if it is huge. What lies idle may be what the program has
 * begun to take again, so mostly only what is kept beyond what may be goes back. */
static inline void leave_taken(struct door *door, size_t own)
{
    leave(door);
    guards_look();
    if (purge_is_due() && (use_excess() > 0 || use_grown() || soft_limit_waits()))
        give_memory_back(false, own);
}

/* After one was freed. */
static inline void leave_given(struct door *door, size_t own)
{
    leave(door);
    look_after(door->cache, own);
}

#endif

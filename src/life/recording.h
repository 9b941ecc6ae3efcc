/* A recording of all calls (src/record), which another process reads. It begins at the start if the
 * option record names a folder, or when another process orders it (settings.h). Processes that this
 * one forks are recorded too. */
#ifndef HAKMEM_LIFE_RECORDING_H
#define HAKMEM_LIFE_RECORDING_H

#include "base/atomic.h"
#include "front/cache.h"
#include "record/ring.h"

/* From now on calls are recorded, to a ring in this folder: 0 or an errno. EBUSY where they are
 * already, or a fork holds the heap. The caller holds no lock. */
int recording_start(const char *where);

/* An event could not be written to this ring, or null; or none can be any more: then nothing is
 * recorded from now on, or from the next such call on, where a lock would have to be waited for. */
void recording_lost(struct ring_head *head, bool gone);

/* What the option asks for at the process's start; says so where that can't be. */
void recording_begin(void);

/* These are called while the process is recorded. */

/* The calling thread, which has this cache or null, is about to fork. */
void recording_fork_prepare(struct cache *mine);

/* In the child of a fork: it gets a ring of its own. */
void recording_fork_child(void);

/* The calling thread, which has this cache, ends. */
void recording_thread_ends(struct cache *cache);

/* Counts a mark (profile/samples.h), and writes it into a recording. Nothing happens while a fork
 * holds the locks. Locks of the slow path must not be held. */
void recording_mark(const char *name);

/* The process ends. Returns when the recorder has read what it needs, or after half a second. */
void recording_end(void);

/* Blocks of the scavenger, which are left out of a recording. Libc keeps the memory of threads that
 * have ended for the next ones, so it may free these in calls of the program. */
extern size_t unnoted_count HIDDEN; /* atomic */
void unnoted_add(const void *p);
bool unnoted_find(const void *p);

/* Whether it was one, which it is no more. */
FAST bool unnoted_forget(const void *p)
{
    return unlikely(load_relaxed(&unnoted_count) != 0) && unnoted_find(p);
}

#endif

/* Returns memory to the kernel: pages inside slabs in use, free slices and superslabs, kept
 * mappings of huge blocks, and what lies in transfer caches and stacks, to its slabs first.
 *
 * Idle memory goes back in the program's own calls that take the slow path, at most LAW_CALL_MOST
 * in each beyond its own block: as soon as much lies idle (learn/returns.h), and what was idle for
 * a while. In a process with threads the scavenger does it instead, by time (scavenger.h). */
#ifndef HAKMEM_LIFE_PURGE_H
#define HAKMEM_LIFE_PURGE_H

#include "back/use.h"
#include "base/atomic.h"
#include "base/defs.h"
#include "base/policy.h"

struct cache;

/* For the slow path, without locks, where purge_is_due. After memory was freed: gives back what is
 * idle, unless that waits for the scavenger; else only what is beyond what may be kept. Finds out
 * what is due next. `own`: bytes of the call's own block, if that is large or huge. Nothing where a
 * fork or another thread has the lock. */
void purge_step(bool freed, size_t own);

/* Whether there is more to give back: then each free takes the slow path. */
extern bool purge_goes_on HIDDEN; /* atomic */

FAST bool purge_is_due(void)
{
    return unlikely((ptrdiff_t)(clock_now() - load_relaxed(&purge_due)) >= 0);
}

/* After a change of keep_bytes or of the limits: gives back at once what is beyond them. */
void purge_beyond(void);

/* Gives back at once what is beyond the limits of containers and those that were set: for who is
 * not followed by a later call that would, as at a thread's end. */
void purge_beyond_limits(void);

/* By time: what lay idle since the last call goes back. Whether there was anything to do,
 * or may be soon. */
bool purge_by_time(void);

/* Gives back all that can be, now, from the stacks of this thread (`mine`, or null) and of others
 * too, but for `pad` bytes of free slices; returns bytes that may have been in memory. */
size_t purge_all(struct cache *mine, size_t pad);

/* Whether every free is checked at once from now on: all caches are closed and emptied, or opened
 * again. Returns how it was. `mine` is the calling thread's cache, or null. */
bool purge_check_frees(struct cache *mine, bool on);

/* Nothing goes back to the kernel until it goes on. Who may not wait tries. */
void purge_stop(void);
bool purge_try_stop(void);
void purge_go_on(void);

/* ---- when the heap passes the option soft_limit_bytes, which back/use.c notes ---- */

/* Who is called when the soft limit is passed; null: nobody. No lock is held. */
typedef void (*soft_limit_called)(void *argument);
void soft_limit_listen(soft_limit_called called, void *argument);

/* Whether the soft limit is passed and nobody has acted on it. */
static inline bool soft_limit_waits(void) { return unlikely(load_relaxed(&limits.passed)); }

/* Gives back what is kept, and calls who wants to be called if that is not enough. No lock is held,
 * and the thread may come back by the slow path. `mine` is its cache, or null. */
void soft_limit_act(struct cache *mine);

#endif

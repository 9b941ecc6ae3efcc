/* Returns memory to the kernel. Free memory keeps its pages as long as the program is expected to
 * need them again soon. Memory that is idle for longer goes back, in small steps:
 *
 *   - pages inside slabs in use, free slices and superslabs, kept mappings of huge blocks,
 *   - blocks in the transfer caches and in the stacks of threads that sleep, to their slabs first.
 *
 * In a process of one thread the slow path does this in the program's own calls, at a pace
 * (pace.h). In one with threads, the scavenger, a thread of hakmem's, does it by time too
 * (scavenger.h). */
#ifndef HAKMEM_LIFE_PURGE_H
#define HAKMEM_LIFE_PURGE_H

#include "back/use.h"
#include "base/counters.h"
#include "base/defs.h"

struct cache;

/* For the slow path, without locks, after blocks were freed or memory was taken: does what is due,
 * or may be done in a rest. `own` is how many bytes the call's own block has, if that is huge.
 * False where a fork or another thread has it. */
bool purge_step(size_t own);

/* Whether the last step could have gone on: the next free should take the slow path. */
bool purge_goes_on(void);

/* Whether the program rests, and time has passed since the last step. */
bool purge_rest_looks(void);

/* Whether what is due has waited since before the program rested. */
bool purge_waits_long(void);

FAST bool purge_is_due(void)
{
    return unlikely((ptrdiff_t)(clock_now() - load_relaxed(&purge_due)) >= 0);
}

/* After a change of `keeping`: gives back at once what is beyond its numbers, and learns epochs
 * from the start. */
void purge_anew(void);

/* Gives back at once what is beyond what may be kept. */
void purge_beyond(void);

/* Gives back at once what is beyond the limits of containers and those that were set: for who is
 * not followed by a later call that would, as at a thread's end. */
void purge_beyond_limits(void);

/* What is free now has been so for long: it goes back, at the pace, as if an epoch had ended. */
void purge_ripen(void);

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

#endif

/* The scavenger: a thread of hakmem that returns memory while the program's threads sleep.
 *
 * It runs while at least two threads use the heap. A new thread's first call of malloc starts it:
 * the program has just made a thread itself, so a filter of system calls permits one at this
 * moment, even if it forbids threads later. The end of the last other thread joins it, so that the
 * kernel sees a process with one thread again (unshare, setns). There is none if the option
 * `scavenger` is off, and none in the child of a fork until the child has threads.
 *
 * It blocks all signals and holds no lock of the program's. */
#ifndef HAKMEM_LIFE_SCAVENGER_H
#define HAKMEM_LIFE_SCAVENGER_H

#include "base/atomic.h"
#include "base/defs.h"
#include "front/cache.h"

/* For scavenger_note. */
void scavenger_noted(struct cache *cache);

/* For malloc's slow path, before it takes a block for the owner of this cache: starts the scavenger
 * at the owner's first call. Never for free: libc calls that with its list of stacks locked, which
 * starting a thread takes. */
FAST void scavenger_note(struct cache *cache)
{
    if (unlikely(cache->fresh))
        scavenger_noted(cache);
}

/* The program freed much: the scavenger looks now, to know at its next look what nobody needed. */
extern bool scavenger_dozes HIDDEN; /* atomic */
void scavenger_roused(void);
FAST void scavenger_rouse(void)
{
    if (unlikely(load_relaxed(&scavenger_dozes)))
        scavenger_roused();
}

/* A thread that used the heap ends, and counts no more. */
void scavenger_thread_ends(void);

/* Whether what the calling thread allocates and frees is the scavenger's, and no part of the
 * program: it is that thread, or is in libc's functions that start and end it. */
bool scavenger_calls(void);

/* In a fork's child the thread is gone. */
void scavenger_fork_child(void);

#endif

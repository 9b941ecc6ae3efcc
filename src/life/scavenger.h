/* The scavenger: a thread of our own that gives memory back while the program's threads sleep.
 *
 * It lives while at least two threads use the heap. A new thread's first call of malloc starts it:
 * the program has just made a thread itself, so it may be made there, whatever a filter of system
 * calls forbids later. The end of the last other thread joins it, so that a process that is alone
 * again is alone for the kernel too (unshare, setns). There is none where the option `scavenger` is
 * off, and none in a fork's child until that has threads.
 *
 * It blocks all signals and holds no lock of the program's. */
#ifndef HAKMEM_LIFE_SCAVENGER_H
#define HAKMEM_LIFE_SCAVENGER_H

#include "base/atomic.h"
#include "base/defs.h"
#include "front/cache.h"

/* Set while it waits for work. */
extern bool scavenger_dozes HIDDEN; /* atomic */

/* There is work for it, if it is there. Called from anywhere. */
void scavenger_wake(void);

/* For scavenger_note. */
void scavenger_noted(struct cache *cache);

/* For malloc's slow path, before it takes a block for the owner of this cache: starts the scavenger
 * at the owner's first call, and wakes it where it may find work. Never for free: libc calls that
 * with its list of stacks locked, which starting a thread takes. */
FAST void scavenger_note(struct cache *cache)
{
    if (unlikely(load_relaxed(&scavenger_dozes) || cache->fresh))
        scavenger_noted(cache);
}

/* A thread that used the heap ends, and counts no more. */
void scavenger_thread_ends(void);

/* In a fork's child the thread is gone. */
void scavenger_fork_child(void);

#endif

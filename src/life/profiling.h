/* What needs malloc closed: a heap profile, guarded blocks, and a recording (recording.h), which
 * needs free closed, too.
 *
 * Guarded blocks (profile/guarded.h) are sampled now and then, as many a second as
 * policy.guards_a_second says, and fewer as their places fill up. Malloc is closed for that until a
 * block was taken. If that was soon, then it is open until the next is due: so a program that
 * allocates much pays nothing between, and one that allocates little pays little. While it is open,
 * the slow path and the scavenger look at the time, and so does the free of a guarded block. */
#ifndef HAKMEM_LIFE_PROFILING_H
#define HAKMEM_LIFE_PROFILING_H

#include "base/atomic.h"
#include "base/defs.h"

/* From now on blocks are sampled, or no more; those that were stay watched. False where that can't
 * be: there is no memory, the kernel has larger pages, or a fork holds the heap. The caller holds
 * no lock. */
bool profile_switch(bool on);

/* Counts the peak anew (samples_watch); false where a fork holds the heap. */
bool profile_watch(void);

/* Turns on what the options ask for at the process's start; says so where that can't be. */
void profile_begin(void);

/* Whether what the calling thread allocates is for that, and no part of the program. */
bool profile_asks_libc(void);

/* The number of guarded blocks a second has changed. False as for profile_switch. */
bool guards_switch(size_t a_second);

/* Takes the lock of threads without a cache, with which heaps are closed (front/cache.h): waits
 * for forks if that is wanted, and is false where one holds the heap still. */
bool heap_mode_enter(bool wait);

/* Whether a guarded block may be taken now; and it was, or none could be. */
bool guards_due(size_t now);
void guards_taken(size_t now);

/* Reports accesses to guarded blocks that are free, and to the pages beside them. It handles
 * SIGSEGV for that, and passes on each other one to the handler that was there. False where the
 * signal can't be handled. To be called again now and then, as the program may have set its own
 * handler meanwhile. The caller holds no lock: libc's sigaction may be replaced. */
bool fault_watch(void);
void fault_fork_child(void);

/* Whether malloc is open, and has to be closed when the next guarded block is due. */
extern bool guards_wait HIDDEN;
void guards_look_now(void);

/* For the slow path, without locks. */
FAST void guards_look(void)
{
    if (unlikely(load_relaxed(&guards_wait)))
        guards_look_now();
}

#endif

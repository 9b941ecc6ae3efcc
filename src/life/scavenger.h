/* The scavenger: a thread of our own that gives memory back while the program's threads sleep.
 * There is none in a process of one thread, none where the option `scavenger` is off, and none in a
 * fork's child until that has threads. It blocks all signals and holds no lock of the program's. */
#ifndef HAKMEM_LIFE_SCAVENGER_H
#define HAKMEM_LIFE_SCAVENGER_H

#include "base/atomic.h"
#include "base/defs.h"

/* Set while it waits for work; set where there should be one. */
extern bool scavenger_dozes HIDDEN, scavenger_asked HIDDEN; /* atomic */

bool scavenger_runs(void);

/* There is work for it, if it is there; else it is asked for. Called from anywhere. */
void scavenger_wake(void);

/* Threads use the heap: it is asked for. */
void scavenger_ask(void);

/* There may be work, `refills` of the calling thread's stacks say, or a block beyond the stacks,
 * which will be free one day: starts it where it may. Called from malloc alone, by a thread with a
 * cache. */
void scavenger_want(size_t refills);
void scavenger_want_large(void);

/* For malloc's door, after so many refills of the calling thread's stacks: what it takes may be
 * left lying in them. */
FAST void scavenger_note(size_t refills)
{
    /* The first ones too: hundreds of threads may do with those. */
    if (unlikely(load_relaxed(&scavenger_dozes)) || unlikely(refills < 8 || refills % 8 == 7))
        scavenger_want(refills);
}

FAST void scavenger_note_large(void)
{
    if (unlikely(load_relaxed(&scavenger_dozes) || load_relaxed(&scavenger_asked)))
        scavenger_want_large();
}

/* The last thread that used the heap ends: so does the scavenger, since libc ends a process whose
 * last thread ends. */
void scavenger_end(void);

/* In a fork's child the thread is gone. */
void scavenger_fork_child(void);

#endif

/* What a thread writes its events with: the chunk of the ring that it fills. The owner's alone, but
 * for the one of all threads that have none, which a lock protects. */
#ifndef HAKMEM_RECORD_TAPE_H
#define HAKMEM_RECORD_TAPE_H

#include "record/ring.h"

/* Whether calls are recorded. Atomic. */
extern bool recording_on HIDDEN;

/* Whether the calling thread is in the middle of a call that is recorded: parts of that, such as
 * what the unwinder allocates, are not. */
extern __thread bool recording_within HIDDEN;

struct tape {
    struct ring_head *ring;         /* of the chunk: another recording may have begun since */
    struct ring_chunk *chunk;       /* null where there is none to fill */
    struct event *first;            /* its events */
    uint32_t used;                  /* events */
    uint64_t time;                  /* of the last one: the ticks without those that are left out */
    uintptr_t stack_low, stack_top; /* what was seen in use of the thread's stack (paths.h) */
    uint64_t looked;                /* call paths that were found known; counts */
};

extern struct tape tape_common HIDDEN; /* of threads that have no cache; lock: cacheless */

/* Of an event: a block, what was asked for, and who asked. */
struct taped {
    enum event_kind kind;
    unsigned path;
    const void *p;
    const void *from; /* of EVENT_REALLOC: the former block */
    size_t bytes, align;
};

/* Writes it. RING_GONE: that can't be any more. RING_CROWDED: the common tape is to be used. */
enum ring_answer tape_write(struct tape *tape, const struct taped *event);

/* Writes the addresses of a path, at most 2 * (CHUNK_EVENTS - 1). */
enum ring_answer tape_write_path(struct tape *tape, unsigned path, const uintptr_t *frames,
                                 unsigned count);

/* Others get what it has; it can go on with another chunk. */
void tape_flush(struct tape *tape);

#endif

/* What a thread writes its events with: the chunk of the ring that it fills. The owner's alone, but
 * for the one of all threads that have none, which a lock protects. */
#ifndef HAKMEM_RECORD_TAPE_H
#define HAKMEM_RECORD_TAPE_H

#include "record/ring.h"

struct tape {
    struct ring_head *ring;         /* of the chunk: another recording may have begun since */
    struct ring_chunk *chunk;       /* null where there is none to fill */
    struct event *first;            /* its events */
    uint64_t time;                  /* of the last one: the ticks without those that are left out */
    uintptr_t stack_low, stack_top; /* what was seen in use of the thread's stack (paths.h) */
    uint64_t looked;                /* call paths that were found known; counts */
};

extern struct tape tape_common HIDDEN; /* of threads that have no cache; lock: cacheless */

FAST uint64_t tape_now(const struct ring_head *head) { return CLOCK_TICKS() >> head->tick_shift; }

/* The time of two events of a chunk differs by less than the time can express. */
#define TIME_MOST ((uint64_t)1 << 31)

/* Whether there is room for so many events after those that are there: `*used`. */
FAST bool tape_has_room(const struct tape *tape, const struct ring_head *head, unsigned events,
                        uint64_t now, uint32_t *used)
{
    if (unlikely(tape->chunk == NULL) || unlikely(tape->ring != head))
        return false;
    *used = load_relaxed(&tape->chunk->events);
    return likely(*used <= CHUNK_EVENTS - events) && likely(now - tape->time < TIME_MOST);
}

/* Writes an event of less than 4 GiB; false where there is no room in the chunk, or no chunk. */
FAST bool tape_put(struct tape *tape, enum event_kind kind, const void *p, unsigned path,
                   size_t bytes)
{
    struct ring_head *head = load_relaxed(&ring);
    if (unlikely(head == NULL))
        return false;
    uint64_t now = tape_now(head);
    uint32_t used = 0;
    if (unlikely(!tape_has_room(tape, head, 1, now, &used)))
        return false;
    tape->first[used] = (struct event){event_what(kind, p, path), event_when(now, bytes)};
    tape->time = now;
    store_release(&tape->chunk->events, used + 1);
    return true;
}

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

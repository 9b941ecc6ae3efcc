/* The ring of a recording: a file that the recorded process and the recorder (python/hakmem) both
 * have in memory. Threads fill chunks with events, the recorder takes the full ones and empties
 * them. What is in it when the process dies is still there. Numbers are in the machine's byte
 * order. This is a format: docs/record.md describes it, python/hakmem/ring.py reads it.
 *
 * In the file come the head (RING_HEAD_BYTES), a ring_chunk for each chunk, and from EVENTS_AT on
 * the events of each chunk. */
#ifndef HAKMEM_RECORD_RING_H
#define HAKMEM_RECORD_RING_H

#include "base/atomic.h"
#include "base/defs.h"
#include "os/os.h"

/* Bytes of the events that wait for the recorder. At 5 million events a second they are full
 * after 0.1 s. Other numbers were not measured. */
#define RING_BYTES (8 * MiB)

/* Bytes that the events that wait for the recorder may take where thousands of threads have each
 * begun a part of them. Room for 12,000 threads; other numbers were not measured. */
#define RING_MOST (48 * MiB)

#ifndef CLOCK_TICKS
#define CLOCK_TICKS() os_nanoseconds()
#define CLOCK_SHIFT() 3u
#endif

#define RING_MAGIC "hakmem-r"
#define RING_FORMAT 1
#define RING_HEAD_BYTES 4096
#define CHUNK_EVENTS 256 /* 4 KiB */

/* An event is two words. The first: 44 bits of the block's address, without its lowest 4 bits; 3
 * bits, an enum event; 17 bits, the number of the call path. The second: when it was, 32 bits of
 * the time; 32 bits, the lower half of the bytes requested. */
struct event {
    uint64_t what, when;
};

enum event_kind {
    EVENT_NONE,    /* after an EVENT_PATH */
    EVENT_MALLOC,  /* address 0: it failed */
    EVENT_CALLOC,  /* zeroed */
    EVENT_FREE,    /* about to be freed */
    EVENT_REALLOC, /* into another block, or it failed: after an EVENT_MORE with the former one */
    EVENT_RESIZE,  /* realloc of the block where it is */
    EVENT_MORE,    /* of the event after it: the former address; instead of a path the logarithm of
                      the alignment; instead of the time the upper half of the bytes */
    EVENT_PATH,    /* a call path: its number; instead of the bytes how many addresses. They follow,
                      two an EVENT_NONE, innermost first: where the call is, not where it returns.
                      The first one's upper bits are instead of the path, the second is a word.
                       PATH_CUT: here calls are left out. Number 0 is no path: a line of text that
                       belongs to the process's mappings, 7 bytes in each address
                       (profile/noted.h) */
};
#define PATH_CUT ((uintptr_t)0)
#define EVENT_ADDRESS_BITS 44
#define EVENT_PATH_BITS 17

FAST uint64_t event_what(enum event_kind kind, const void *p, unsigned path)
{
    uint64_t grains = ((uintptr_t)p >> 4) & (((uint64_t)1 << EVENT_ADDRESS_BITS) - 1);
    return grains | (uint64_t)kind << EVENT_ADDRESS_BITS | (uint64_t)path << (64 - EVENT_PATH_BITS);
}

FAST uint64_t event_when(uint64_t time, size_t bytes)
{
    return (uint32_t)time | (uint64_t)bytes << 32;
}

enum chunk_state { CHUNK_FREE, CHUNK_FILLING, CHUNK_FULL };

struct ring_chunk {
    uint32_t state; /* an enum chunk_state; who takes it out of the first or last owns it; atomic */
    uint32_t events; /* that are there; atomic */
    uint32_t thread; /* the kernel's number */
    uint32_t unused;
    uint64_t order;       /* counts the chunks of the process */
    uint64_t ticks, time; /* when it was begun: by the events' clock; in ns of CLOCK_MONOTONIC */
    uint64_t pad[3];
};
static_assert(sizeof(struct ring_chunk) == CACHE_LINE, "no two threads write the same line");

enum ring_state { RING_AT_WORK = 1, RING_ENDING, RING_ENDED };

struct ring_head {
    char magic[8];
    uint32_t format;
    uint32_t state;                /* an enum ring_state, of the process; atomic */
    uint32_t chunks;               /* how many; more when the ring grows; atomic */
    uint32_t chunks_at, events_at; /* bytes from the start of the file */
    uint32_t tick_shift;           /* an event's time is of the ticks from this bit on */
    uint32_t process;
    uint32_t parent;        /* the process that it was forked from while that was recorded, or 0 */
    uint64_t ticks, time;   /* when it was begun, as in a chunk */
    uint64_t order;         /* the next chunk's; atomic */
    uint64_t lost;          /* events that found no room; atomic */
    uint64_t waits, waited; /* how often a thread waited for the recorder, and for how many ns */
    uint32_t chunks_most;   /* as far as is known; atomic */
    uint32_t growing;       /* 1 while a thread makes the ring larger; atomic */
    uint64_t unused[4];
    /* From here on the recorder's. */
    uint64_t beats; /* changes as long as it is there */
    uint32_t seen;  /* the state that it has seen, after it has read all that it needs; atomic */
    uint32_t stop;  /* it wants no more; atomic */
    uint64_t rest[6];
};
/* From here on the head has the beginning of the program's command line, as the kernel tells it:
 * the recorder can't ask for it where the process has ended by then. */
#define RING_COMMAND_AT 1024
static_assert(sizeof(struct ring_head) <= RING_COMMAND_AT, "apart");
static_assert(offsetof(struct ring_head, beats) == 2 * CACHE_LINE, "no two processes write a line");

/* Whether a ring is there, and of the process: null, or the ring. Atomic. */
extern struct ring_head *ring HIDDEN;

/* Makes the file, in the folder, and maps it: 0 or an errno. One thread at a time. `parent` as
 * above. The file's name is the process's number, a dot, and the time in ns. */
int ring_open(const char *folder, unsigned parent);

/* Whether it is of this process: not so in the child of a fork before its time has come. */
bool ring_is_mine(const struct ring_head *head);

/* It is of no more use, or in the child of a fork the parent's. Another thread, or what a signal
 * handler interrupted that forked, may still be about to write to it: so its addresses stay, with
 * other memory. */
void ring_leave(void);

/* The first chunks are for what all threads write to together that find no other one: since the
 * recorder falls behind, or each chunk is a thread's and the ring can't grow. */
#define CHUNKS_COMMON 16

/* RING_CROWDED: there is no chunk of the thread's own. RING_GONE: the recorder empties none, or
 * wants no more. */
enum ring_answer { RING_TAKEN, RING_CROWDED, RING_GONE };

/* Where things lie does not depend on what is in the head, which may just be gone (ring_leave). */
#define CHUNK_BYTES (CHUNK_EVENTS * sizeof(struct event))
#define RING_CHUNKS (RING_BYTES / CHUNK_BYTES)
#define RING_CHUNKS_MOST (RING_MOST / CHUNK_BYTES)
#define CHUNKS_AT RING_HEAD_BYTES
#define EVENTS_AT round_up(CHUNKS_AT + RING_CHUNKS_MOST * sizeof(struct ring_chunk), 64 * KiB)

static inline struct ring_chunk *ring_chunks(struct ring_head *head)
{
    return (struct ring_chunk *)((char *)head + CHUNKS_AT);
}

static inline struct event *ring_events(struct ring_head *head, const struct ring_chunk *chunk)
{
    return (struct event *)((char *)head + EVENTS_AT) +
           (size_t)(chunk - ring_chunks(head)) * CHUNK_EVENTS;
}

/* ---- tapes ----
 *
 * What a thread writes its events with: the chunk of the ring that it fills. The owner's alone, but
 * for the one of all threads that have none, which a lock protects. */

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

/* Of an event: a block, what was asked for, and who asked. Of EVENT_PATH the addresses, as many as
 * `bytes` says, at most 2 * (CHUNK_EVENTS - 1). */
struct taped {
    enum event_kind kind;
    unsigned path;
    const void *p;
    const void *from; /* of EVENT_REALLOC: the former block */
    size_t bytes, align;
    const uintptr_t *frames;
};

/* Writes it. RING_GONE: that can't be any more. RING_CROWDED: the common tape is to be used. */
enum ring_answer tape_write(struct tape *tape, const struct taped *event);

/* Text as the addresses of a path, which have 61 bits; how many: what is beyond is left out. */
#define PACKED 7 /* bytes in each */
#define PACKED_WORDS 160
unsigned tape_pack(const char *text, size_t bytes, uintptr_t *words);

/* Others get what it has; it can go on with another chunk. */
void tape_flush(struct tape *tape);

#endif

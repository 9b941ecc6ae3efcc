#include "record/tape.h"

bool recording_on;
__thread bool recording_within;
struct tape tape_common;

/* The time of two events of a chunk differs by less than the time can express. */
#define TIME_MOST ((uint64_t)1 << 31)

static uint64_t time_now(const struct ring_head *head) { return CLOCK_TICKS() >> head->tick_shift; }

void tape_flush(struct tape *tape)
{
    if (tape->chunk != NULL && tape->ring == load_relaxed(&ring))
        ring_give(tape->chunk);
    tape->chunk = NULL;
}

static SLOW enum ring_answer turn(struct tape *tape)
{
    struct ring_chunk *chunk;
    struct ring_head *head = load_acquire(&ring);
    if (head != NULL && ring_is_mine(head))
        tape_flush(tape);
    enum ring_answer answer = ring_take(head, tape == &tape_common, &chunk);
    if (answer != RING_TAKEN)
        return answer;
    tape->ring = head;
    tape->chunk = chunk;
    tape->used = 0;
    tape->first = ring_events(head, chunk);
    tape->time = chunk->ticks >> head->tick_shift;
    return RING_TAKEN;
}

/* Room for so many events. */
FAST enum ring_answer make_room(struct tape *tape, const struct ring_head *head, unsigned events,
                                uint64_t now)
{
    bool has_room = likely(tape->chunk != NULL) && likely(tape->ring == head) &&
                    likely(tape->used + events <= CHUNK_EVENTS) &&
                    likely(now - tape->time < TIME_MOST);
    return has_room ? RING_TAKEN : turn(tape);
}

static inline uint64_t what(enum event_kind kind, const void *p, unsigned path)
{
    uint64_t grains = ((uintptr_t)p >> 4) & (((uint64_t)1 << EVENT_ADDRESS_BITS) - 1);
    return grains | (uint64_t)kind << EVENT_ADDRESS_BITS | (uint64_t)path << (64 - EVENT_PATH_BITS);
}

/* Of no kind: an address of code, whose upper bits are where a path's number would be. */
static inline uint64_t what_address(uintptr_t code)
{
    return what(EVENT_NONE, NULL, (unsigned)(code >> EVENT_ADDRESS_BITS)) |
           (code & (((uint64_t)1 << EVENT_ADDRESS_BITS) - 1));
}

static inline uint64_t when(uint64_t time, size_t bytes)
{
    return (uint32_t)time | (uint64_t)(uint32_t)bytes << 32;
}

enum ring_answer tape_write(struct tape *tape, const struct taped *event)
{
    struct ring_head *head = load_relaxed(&ring);
    if (unlikely(head == NULL))
        return RING_GONE;
    uint64_t now = time_now(head);
    bool more = event->from != NULL || event->align > 1 || event->bytes > UINT32_MAX;
    enum ring_answer answer = make_room(tape, head, 1 + more, now);
    if (unlikely(answer != RING_TAKEN))
        return answer;
    struct event *next = &tape->first[tape->used];
    if (more) {
        unsigned align = event->align > 1 ? highest_bit(event->align) : 0;
        *next++ = (struct event){what(EVENT_MORE, event->from, align), event->bytes >> 32};
    }
    *next = (struct event){what(event->kind, event->p, event->path), when(now, event->bytes)};
    tape->time = now;
    tape->used += 1 + more;
    store_release(&tape->chunk->events, tape->used);
    return RING_TAKEN;
}

enum ring_answer tape_write_path(struct tape *tape, unsigned path, const uintptr_t *frames,
                                 unsigned count)
{
    struct ring_head *head = load_relaxed(&ring);
    if (head == NULL)
        return RING_GONE;
    uint64_t now = time_now(head);
    unsigned events = 1 + (count + 1) / 2;
    enum ring_answer answer = make_room(tape, head, events, now);
    if (answer != RING_TAKEN)
        return answer;
    struct event *next = &tape->first[tape->used];
    *next++ = (struct event){what(EVENT_PATH, NULL, path), when(now, count)};
    for (unsigned i = 0; i < count; i += 2)
        *next++ = (struct event){what_address(frames[i]), i + 1 < count ? frames[i + 1] : 0};
    tape->time = now;
    tape->used += events;
    store_release(&tape->chunk->events, tape->used);
    return RING_TAKEN;
}

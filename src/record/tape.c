#include "record/tape.h"

struct tape tape_common;

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
    tape->first = ring_events(head, chunk);
    tape->time = chunk->ticks >> head->tick_shift;
    return RING_TAKEN;
}

/* Room for so many events, from *next on. */
static enum ring_answer make_room(struct tape *tape, const struct ring_head *head, unsigned events,
                                  uint64_t now, struct event **next)
{
    uint32_t used = 0;
    enum ring_answer answer = RING_TAKEN;
    if (!tape_has_room(tape, head, events, now, &used)) {
        used = 0;
        answer = turn(tape);
    }
    if (answer == RING_TAKEN)
        *next = tape->first + used;
    return answer;
}

/* Of no kind: an address of code, whose upper bits are where a path's number would be. */
static inline uint64_t what_address(uintptr_t code)
{
    return event_what(EVENT_NONE, NULL, (unsigned)(code >> EVENT_ADDRESS_BITS)) |
           (code & (((uint64_t)1 << EVENT_ADDRESS_BITS) - 1));
}

/* The chunk has events up to `next`, the last one at this time. */
static void written(struct tape *tape, const struct event *next, uint64_t now)
{
    tape->time = now;
    store_release(&tape->chunk->events, (uint32_t)(next - tape->first));
}

enum ring_answer tape_write(struct tape *tape, const struct taped *event)
{
    struct ring_head *head = load_relaxed(&ring);
    if (unlikely(head == NULL))
        return RING_GONE;
    uint64_t now = tape_now(head);
    bool more = event->from != NULL || event->align > 1 || event->bytes > UINT32_MAX;
    struct event *next = NULL;
    enum ring_answer answer = make_room(tape, head, 1 + more, now, &next);
    if (answer != RING_TAKEN)
        return answer;
    if (more) {
        unsigned align = event->align > 1 ? highest_bit(event->align) : 0;
        *next++ = (struct event){event_what(EVENT_MORE, event->from, align), event->bytes >> 32};
    }
    *next++ = (struct event){event_what(event->kind, event->p, event->path),
                             event_when(now, event->bytes)};
    written(tape, next, now);
    return RING_TAKEN;
}

enum ring_answer tape_write_path(struct tape *tape, unsigned path, const uintptr_t *frames,
                                 unsigned count)
{
    struct ring_head *head = load_relaxed(&ring);
    if (head == NULL)
        return RING_GONE;
    uint64_t now = tape_now(head);
    unsigned events = 1 + (count + 1) / 2;
    struct event *next = NULL;
    enum ring_answer answer = make_room(tape, head, events, now, &next);
    if (answer != RING_TAKEN)
        return answer;
    *next++ = (struct event){event_what(EVENT_PATH, NULL, path), event_when(now, count)};
    for (unsigned i = 0; i < count; i += 2)
        *next++ = (struct event){what_address(frames[i]), i + 1 < count ? frames[i + 1] : 0};
    written(tape, next, now);
    return RING_TAKEN;
}

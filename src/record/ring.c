#include "record/ring.h"

#include "base/text.h"
#include "os/os.h"

#include <string.h>

/* Milliseconds after which a recorder that empties nothing and shows no sign of life counts as
 * gone, so that the program goes on without it. */
#define RECORDER_SILENT_MS 5000

#define FOLDER_MOST 1024

struct ring_head *ring;

static char ring_path[FOLDER_MOST + 64];
static unsigned hint; /* where the next free chunk may be; atomic */

#define FILE_BYTES(count) (EVENTS_AT + (count)*CHUNK_BYTES)

COLD int ring_open(const char *folder, unsigned parent)
{
    text_of(ring_path, sizeof ring_path, "%s/%u.%zu", folder, os_process(), os_nanoseconds());
    int error;
    struct ring_head *head =
        os_map_new_file(ring_path, FILE_BYTES(RING_CHUNKS), FILE_BYTES(RING_CHUNKS_MOST), &error);
    if (head == NULL)
        return error;
    head->format = RING_FORMAT;
    head->state = RING_AT_WORK;
    head->chunks = (uint32_t)RING_CHUNKS;
    head->chunks_most = (uint32_t)RING_CHUNKS_MOST;
    head->chunks_at = (uint32_t)CHUNKS_AT;
    head->events_at = (uint32_t)EVENTS_AT;
    head->tick_shift = CLOCK_SHIFT();
    head->process = os_process();
    head->parent = parent;
    head->ticks = CLOCK_TICKS();
    head->time = os_nanoseconds();
    os_read_file("/proc/self/cmdline", (char *)head + RING_COMMAND_AT,
                 RING_HEAD_BYTES - RING_COMMAND_AT, &error); /* without /proc there is none */
    __atomic_thread_fence(__ATOMIC_RELEASE);
    memcpy(head->magic, RING_MAGIC, sizeof head->magic); /* last: from now on it can be read */
    store_relaxed(&hint, 0);
    store_release(&ring, head);
    return 0;
}

bool ring_is_mine(const struct ring_head *head) { return head->process == os_process(); }

/* How many there are: 0 where the ring is just gone. */
static unsigned chunks_there(const struct ring_head *head)
{
    return (unsigned)smaller(load_acquire(&head->chunks), RING_CHUNKS_MOST);
}

#define GROWING_WAITS 100 /* milliseconds */

/* One thread at a time makes it larger; false where another one takes long. */
static bool growing_begin(struct ring_head *head)
{
    for (unsigned waited = 0; waited < GROWING_WAITS; waited++) {
        if (__atomic_exchange_n(&head->growing, 1, __ATOMIC_ACQUIRE) == 0)
            return true;
        os_let_pass(1);
    }
    return false;
}

COLD void ring_leave(void)
{
    struct ring_head *head = ring;
    store_release(&ring, NULL);
    if (head == NULL)
        return;
    bool stays = !ring_is_mine(head) || growing_begin(head); /* as large as it is */
    unsigned count = stays ? chunks_there(head) : (unsigned)RING_CHUNKS_MOST;
    os_leave_file(head, FILE_BYTES(count), FILE_BYTES(RING_CHUNKS_MOST));
}

/* `*full`: how many of those that were looked at wait for the recorder. */
static struct ring_chunk *find_free(struct ring_head *head, bool common, unsigned *full)
{
    unsigned first = common ? 0 : CHUNKS_COMMON;
    unsigned there = chunks_there(head);
    unsigned count = common ? CHUNKS_COMMON : there - CHUNKS_COMMON;
    unsigned from = common ? 0 : load_relaxed(&hint);
    *full = 0;
    for (unsigned i = 0; there > CHUNKS_COMMON && i < count; i++) {
        unsigned at = (from + i) % count;
        struct ring_chunk *chunk = &ring_chunks(head)[first + at];
        uint32_t state = load_relaxed(&chunk->state);
        *full += state == CHUNK_FULL;
        if (state != CHUNK_FREE ||
            !__atomic_compare_exchange_n(&chunk->state, &state, CHUNK_FILLING, false,
                                         __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
            continue;
        if (!common)
            store_relaxed(&hint, at + 1);
        return chunk;
    }
    return NULL;
}

/* Each thread that has begun a chunk keeps it until that is full: where these are most of them, the
 * ring is too small for so many threads. Whether there are more chunks than before. */
static SLOW bool grow(struct ring_head *head, unsigned before)
{
    if (before >= load_relaxed(&head->chunks_most) || !growing_begin(head))
        return chunks_there(head) > before;
    unsigned most = (unsigned)smaller(load_relaxed(&head->chunks_most), RING_CHUNKS_MOST);
    unsigned more = (unsigned)smaller(before + RING_CHUNKS, most);
    if (chunks_there(head) == before && more > before) {
        if (os_grow_file(ring_path, FILE_BYTES(more)) == 0) {
            store_relaxed(&hint, before - CHUNKS_COMMON);
            store_release(&head->chunks, more);
        } else {
            store_relaxed(&head->chunks_most, before);
        }
    }
    store_release(&head->growing, 0);
    return chunks_there(head) > before;
}

/* For the calling thread alone. */
static struct ring_chunk *find_own(struct ring_head *head)
{
    for (;;) {
        unsigned full, before = chunks_there(head);
        struct ring_chunk *chunk = find_free(head, false, &full);
        if (chunk != NULL || full >= before / 2 || !grow(head, before))
            return chunk;
    }
}

/* What the recorder said last when somebody waited, and when that was; lock-free, as it may be a
 * little wrong. Atomic. */
static uint64_t beats_seen, beats_time;

static bool recorder_lives(const struct ring_head *head, uint64_t now)
{
    uint64_t beats = load_relaxed(&head->beats);
    if (beats != load_relaxed(&beats_seen)) {
        store_relaxed(&beats_seen, beats);
        store_relaxed(&beats_time, now);
    }
    /* Another thread's moment may be a later one. */
    int64_t silent = (int64_t)(now - load_relaxed(&beats_time));
    return silent < (int64_t)RECORDER_SILENT_MS * 1000000;
}

/* Longer and longer: the recorder needs a processor. */
#define STEP_LAST 64 /* milliseconds */

/* For a common chunk: one thread waits for all. */
static SLOW struct ring_chunk *wait_for_free(struct ring_head *head)
{
    uint64_t began = os_nanoseconds();
    uint64_t now = began;
    unsigned step = 1, full;
    struct ring_chunk *chunk = NULL;
    store_relaxed(&beats_time, began);
    while (chunk == NULL && load_relaxed(&head->stop) == 0 && recorder_lives(head, now)) {
        os_let_pass(step);
        step = step < STEP_LAST ? 2 * step : step;
        chunk = find_free(head, true, &full);
        now = os_nanoseconds();
    }
    add_relaxed(&head->waits, 1);
    add_relaxed(&head->waited, now - began);
    return chunk;
}

/* A chunk for the calling thread to fill, or a common one, for which it waits as long as the
 * recorder shows signs of life. */
static SLOW enum ring_answer ring_take(struct ring_head *head, bool common,
                                       struct ring_chunk **taken)
{
    if (head == NULL || load_relaxed(&head->stop) != 0 || !ring_is_mine(head))
        return RING_GONE;
    unsigned full;
    struct ring_chunk *chunk = common ? find_free(head, true, &full) : find_own(head);
    if (chunk == NULL && !common)
        return RING_CROWDED;
    if (unlikely(chunk == NULL))
        chunk = wait_for_free(head);
    if (chunk == NULL)
        return RING_GONE;
    store_relaxed(&chunk->events, 0);
    chunk->thread = os_thread_id();
    chunk->order = __atomic_fetch_add(&head->order, 1, __ATOMIC_RELAXED);
    chunk->ticks = CLOCK_TICKS();
    chunk->time = os_nanoseconds();
    *taken = chunk;
    return RING_TAKEN;
}

/* ---- tapes ---- */

struct tape tape_common;

void tape_flush(struct tape *tape)
{
    if (tape->chunk != NULL && tape->ring == load_relaxed(&ring))
        store_release(&tape->chunk->state, CHUNK_FULL);
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

enum ring_answer tape_write(struct tape *tape, const struct taped *event)
{
    struct ring_head *head = load_relaxed(&ring);
    if (unlikely(head == NULL))
        return RING_GONE;
    uint64_t now = tape_now(head);
    unsigned count = event->kind == EVENT_PATH ? (unsigned)event->bytes : 0;
    bool more = event->from != NULL || event->align > 1 || event->bytes > UINT32_MAX;
    struct event *next = NULL;
    enum ring_answer answer = make_room(tape, head, 1 + more + (count + 1) / 2, now, &next);
    if (answer != RING_TAKEN)
        return answer;
    if (more) {
        unsigned align = event->align > 1 ? highest_bit(event->align) : 0;
        *next++ = (struct event){event_what(EVENT_MORE, event->from, align), event->bytes >> 32};
    }
    *next++ = (struct event){event_what(event->kind, event->p, event->path),
                             event_when(now, event->bytes)};
    for (unsigned i = 0; i < count; i += 2)
        *next++ = (struct event){what_address(event->frames[i]),
                                 i + 1 < count ? event->frames[i + 1] : 0};
    tape->time = now;
    store_release(&tape->chunk->events, (uint32_t)(next - tape->first));
    return RING_TAKEN;
}

unsigned tape_pack(const char *text, size_t bytes, uintptr_t *words)
{
    unsigned count = 0;
    for (size_t i = 0; i < bytes && count < PACKED_WORDS; i += PACKED) {
        uintptr_t word = 0;
        for (size_t k = 0; k < PACKED && i + k < bytes; k++)
            word |= (uintptr_t)(unsigned char)text[i + k] << 8 * k;
        words[count++] = word;
    }
    return count;
}

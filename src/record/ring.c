#include "record/ring.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "learn/laws.h"
#include "os/os.h"
#include "os/self.h"

#define FOLDER_MOST 1024

struct ring_head *ring;

static char file[FOLDER_MOST + 64];
static unsigned chunks;  /* that are there; atomic */
static unsigned hint;    /* where the next free chunk may be; atomic */
static unsigned most;    /* as far as is known; atomic */
static unsigned growing; /* whether a thread makes more of them; atomic */

#define FILE_BYTES(chunks) (EVENTS_AT + (chunks)*CHUNK_BYTES)

/* Without /proc there is none. */
static COLD void command_copy(char *to, size_t room)
{
    int error;
    int file = os_open("/proc/self/cmdline", &error);
    if (file < 0)
        return;
    for (size_t n; (n = os_read(file, to, room, &error)) > 0; room -= n)
        to += n;
    os_close(file);
}

COLD int ring_open(const char *folder, unsigned parent)
{
    struct text t;
    text_init(&t, file, sizeof file);
    text_add(&t, folder);
    text_add(&t, "/");
    text_add_number(&t, (uint64_t)getpid());
    text_add(&t, ".");
    text_add_number(&t, os_nanoseconds());
    int error;
    struct ring_head *head =
        os_map_new_file(file, FILE_BYTES(RING_CHUNKS), FILE_BYTES(RING_CHUNKS_MOST), &error);
    if (head == NULL)
        return error;
    head->format = RING_FORMAT;
    head->state = RING_AT_WORK;
    head->chunks = (uint32_t)RING_CHUNKS;
    head->chunks_at = (uint32_t)CHUNKS_AT;
    head->events_at = (uint32_t)EVENTS_AT;
    head->tick_shift = CLOCK_SHIFT();
    head->process = (uint32_t)getpid();
    head->parent = parent;
    head->ticks = CLOCK_TICKS();
    head->time = os_nanoseconds();
    command_copy((char *)head + RING_COMMAND_AT, RING_HEAD_BYTES - RING_COMMAND_AT);
    __atomic_thread_fence(__ATOMIC_RELEASE);
    memcpy(head->magic, RING_MAGIC, sizeof head->magic); /* last: from now on it can be read */
    store_relaxed(&hint, 0);
    store_relaxed(&chunks, (unsigned)RING_CHUNKS);
    store_relaxed(&most, (unsigned)RING_CHUNKS_MOST);
    store_relaxed(&growing, 0);
    store_release(&ring, head);
    return 0;
}

bool ring_is_mine(const struct ring_head *head) { return head->process == (uint32_t)getpid(); }

COLD void ring_leave(void)
{
    struct ring_head *head = ring;
    store_release(&ring, NULL);
    if (head != NULL)
        os_leave_file(head, FILE_BYTES(RING_CHUNKS_MOST));
}

/* `*full`: how many of those that were looked at wait for the recorder. */
static struct ring_chunk *find_free(struct ring_head *head, bool common, unsigned *full)
{
    unsigned first = common ? 0 : CHUNKS_COMMON;
    unsigned count = common ? CHUNKS_COMMON : load_relaxed(&chunks) - CHUNKS_COMMON;
    unsigned from = common ? 0 : load_relaxed(&hint);
    *full = 0;
    for (unsigned i = 0; i < count; i++) {
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
 * ring is too small for so many threads. One thread at a time; others wait a little. */
#define GROWING_WAITS 100 /* milliseconds */
static SLOW bool grow(struct ring_head *head)
{
    unsigned before = load_relaxed(&chunks);
    unsigned more = smaller(before + RING_CHUNKS, load_relaxed(&most));
    if (more == before)
        return false;
    for (unsigned waited = 0; __atomic_exchange_n(&growing, 1, __ATOMIC_ACQUIRE) != 0; waited++) {
        if (waited == GROWING_WAITS)
            return false;
        os_let_pass(1);
    }
    bool other_grew = load_relaxed(&chunks) != before;
    bool grown = !other_grew && os_grow_file(file, FILE_BYTES(more)) == 0;
    if (!grown && !other_grew)
        store_relaxed(&most, before);
    if (grown) {
        store_relaxed(&hint, before - CHUNKS_COMMON);
        store_release(&head->chunks, more);
        store_release(&chunks, more);
    }
    store_release(&growing, 0);
    return grown || other_grew;
}

/* For the calling thread alone. */
static struct ring_chunk *find_own(struct ring_head *head)
{
    unsigned full;
    struct ring_chunk *chunk = find_free(head, false, &full);
    while (chunk == NULL && full < load_relaxed(&chunks) / 2 && grow(head))
        chunk = find_free(head, false, &full);
    return chunk;
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
    return silent < (int64_t)LAW_RECORDER_SILENT_MS * 1000000;
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

SLOW enum ring_answer ring_take(struct ring_head *head, bool common, struct ring_chunk **taken)
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

void ring_give(struct ring_chunk *chunk) { store_release(&chunk->state, CHUNK_FULL); }

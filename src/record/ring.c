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

static unsigned hint; /* where the next free chunk may be; atomic */

#define RING_FILE_BYTES (EVENTS_AT + CHUNKS * CHUNK_BYTES)

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
    char path[FOLDER_MOST + 64];
    struct text t;
    text_init(&t, path, sizeof path);
    text_add(&t, folder);
    text_add(&t, "/");
    text_add_number(&t, (uint64_t)getpid());
    text_add(&t, ".");
    text_add_number(&t, os_nanoseconds());
    int error;
    struct ring_head *head = os_map_new_file(path, RING_FILE_BYTES, &error);
    if (head == NULL)
        return error;
    head->format = RING_FORMAT;
    head->state = RING_AT_WORK;
    head->chunks = (uint32_t)CHUNKS;
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
    store_release(&ring, head);
    return 0;
}

bool ring_is_mine(const struct ring_head *head) { return head->process == (uint32_t)getpid(); }

COLD void ring_leave(void)
{
    struct ring_head *head = ring;
    store_release(&ring, NULL);
    if (head != NULL)
        os_leave_file(head, RING_FILE_BYTES);
}

static struct ring_chunk *find_free(struct ring_head *head, bool common)
{
    unsigned first = common ? 0 : CHUNKS_COMMON;
    unsigned count = common ? CHUNKS_COMMON : CHUNKS - CHUNKS_COMMON;
    unsigned from = common ? 0 : load_relaxed(&hint);
    for (unsigned i = 0; i < count; i++) {
        unsigned at = (from + i) % count;
        struct ring_chunk *chunk = &ring_chunks(head)[first + at];
        uint32_t state = load_relaxed(&chunk->state);
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
    unsigned step = 1;
    struct ring_chunk *chunk = NULL;
    store_relaxed(&beats_time, began);
    while (chunk == NULL && load_relaxed(&head->stop) == 0 && recorder_lives(head, now)) {
        os_let_pass(step);
        step = step < STEP_LAST ? 2 * step : step;
        chunk = find_free(head, true);
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
    struct ring_chunk *chunk = find_free(head, common);
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

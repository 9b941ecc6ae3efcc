#include "api/recorded.h"

#include "api/sampled.h"
#include "front/cacheless.h"
#include "life/life.h"
#include "life/recording.h"
#include "os/lock.h"
#include "os/os.h"
#include "watch/backtrace.h"

static struct tape *tape_mine(void)
{
    struct sampler *sampler = sampler_mine();
    return sampler != NULL ? &sampler->tape : NULL;
}

static SLOW enum ring_answer write_common(const struct taped *event)
{
    enum ring_answer answer = RING_CROWDED;
    if (lock_enter(&cacheless_lock)) {
        answer = tape_write(&tape_common, event);
        lock_release(&cacheless_lock);
    }
    return answer;
}

static void path_write(struct tape *tape, unsigned path, const uintptr_t *frames, unsigned count)
{
    if (tape_write_path(tape, path, frames, count) == RING_CROWDED && lock_enter(&cacheless_lock)) {
        tape_write_path(&tape_common, path, frames, count);
        lock_release(&cacheless_lock);
    }
}

/* By unwind tables. */
static SLOW void stack_unwind(struct frames *trace, struct caller from)
{
    trace->count = 0;
    trace->present_until = (from.stack | (os_page - 1)) + 1;
    if (backtrace_cheap())
        backtrace_fill(trace);
}

static SLOW unsigned path_read(struct tape *tape, struct caller from)
{
    uintptr_t frames[FRAMES_READ], stacks[FRAMES_READ];
    struct frames trace = {.most = FRAMES_READ, .frames = frames, .stacks = stacks};
    if (path_to_check(tape) || !stack_walk(tape, from, frames, stacks, FRAMES_READ, &trace.count))
        stack_unwind(&trace, from);
    bool is_new;
    struct stack_read stack = {trace.count, frames, stacks};
    unsigned path = path_enter(tape, from, &stack, &is_new);
    if (is_new)
        path_write(tape, path, frames, trace.count);
    return path;
}

static inline unsigned path_of(struct tape *tape, struct caller from)
{
    unsigned path;
    return likely(path_known(tape, from, &path)) ? path : path_read(tape, from);
}

static void write(struct taped event, struct caller from)
{
    struct ring_head *head = load_acquire(&ring);
    struct tape *tape = tape_mine();
    enum ring_answer answer = RING_CROWDED;
    if (likely(tape != NULL)) {
        if (event.kind != EVENT_FREE)
            event.path = path_of(tape, from);
        answer = tape_write(tape, &event);
    }
    if (unlikely(answer == RING_CROWDED))
        answer = write_common(&event);
    if (unlikely(answer != RING_TAKEN))
        recording_lost(head, answer == RING_GONE);
}

bool recorded_begin(void)
{
    if (recording_within)
        return false;
    recording_within = true;
    return true;
}

void recorded_end(enum event_kind kind, void *p, size_t n, size_t align, struct caller from)
{
    write((struct taped){.kind = kind, .p = p, .bytes = n, .align = align}, from);
    recording_within = false;
}

void recorded_end_realloc(const void *former, void *p, size_t n, struct caller from)
{
    struct taped event = {.kind = EVENT_REALLOC, .p = p, .from = former, .bytes = n};
    if (former == p) {
        event.kind = EVENT_RESIZE;
        event.from = NULL;
    }
    write(event, from);
    recording_within = false;
}

SLOW void recorded_free(const void *p)
{
    if (recording_within)
        return;
    recording_within = true;
    write((struct taped){.kind = EVENT_FREE, .p = p}, (struct caller){NULL, 0});
    recording_within = false;
}

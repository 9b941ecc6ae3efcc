/* Recorded calls (slow.h). */
#include "api/sampled.h"
#include "api/slow.h"
#include "base/memory.h"
#include "front/cache.h"
#include "life/life.h"
#include "life/recording.h"
#include "life/scavenger.h"
#include "life/settings.h"
#include "os/backtrace.h"
#include "os/lock.h"
#include "os/os.h"
#include "profile/noted.h"
#include "profile/python.h"
#include "sheet/profile.h"

static bool were_closed; /* modules, while the recording runs; atomic */
static bool changed;     /* which are closed, since the loader allocated; atomic */
static uintptr_t loader_start, loader_bytes; /* atomic; 0: not known */

static inline struct tape *tape_mine(void)
{
    struct sampler *sampler = cache_current()->sampler;
    if (unlikely(sampler == NULL))
        sampler = sampler_mine();
    return sampler != NULL ? &sampler->tape : NULL;
}

/* `tape` is the calling thread's, if it has one; else, and where it finds no room, the common one.
 */
static SLOW enum ring_answer event_write(struct tape *tape, const struct taped *event)
{
    enum ring_answer answer = tape != NULL ? tape_write(tape, event) : RING_CROWDED;
    if (answer == RING_CROWDED && lock_enter(&cacheless_lock)) {
        answer = tape_write(&tape_common, event);
        lock_release(&cacheless_lock);
    }
    return answer;
}

/* What finds no room is missing there, as the event is that would have followed. */
static void path_write(struct tape *tape, unsigned path, const uintptr_t *frames, unsigned count)
{
    event_write(
        tape, &(struct taped){.kind = EVENT_PATH, .path = path, .bytes = count, .frames = frames});
}

/* Text, as a path. */
static void words_write(struct tape *tape, const char *text, size_t bytes)
{
    uintptr_t words[PACKED_WORDS];
    path_write(tape, PATH_NONE, words, tape_pack(text, bytes, words));
}

/* Notes the modules of these calls; their addresses become those that the modules have. */
static SLOW void modules_note(uintptr_t *frames, unsigned count)
{
    struct modules_met met;
    modules_meet(&met, frames, count);
    if (lock_enter(&cacheless_lock)) {
        modules_see(&met, frames, count);
        lock_release(&cacheless_lock);
    }
}

/* Writes a path, and what is not written yet of the modules that it is in. */
static SLOW void path_write_new(struct tape *tape, unsigned path, uintptr_t *frames, unsigned count)
{
    struct module loader;
    if (load_relaxed(&loader_bytes) == 0 && module_loader(&loader)) {
        store_relaxed(&loader_start, loader.start);
        store_relaxed(&loader_bytes, loader.end - loader.start);
    }
    modules_note(frames, count);
    for (struct seen_module *one = modules_seen(); one != NULL; one = one->next) {
        if (load_relaxed(&one->recorded) == paths_generation())
            continue;
        if (one->bytes > 0)
            words_write(tape, one->lines, one->bytes);
        store_relaxed(&one->recorded, paths_generation());
    }
    path_write(tape, path, frames, count);
}

/* The loader allocates as it opens a module. */
static SLOW void loader_calls(void)
{
    if (!modules_closed() && !load_relaxed(&changed))
        return;
    store_relaxed(&were_closed, true);
    store_relaxed(&changed, false);
    paths_read_anew();
}

/* Of calls where other modules lay once; else 0. */
static SLOW uint64_t modules_of(const uintptr_t *frames, unsigned count)
{
    uintptr_t told_apart[FRAMES_READ];
    uint64_t sum = 0;
    words_move(told_apart, frames, count);
    modules_note(told_apart, count);
    if (modules_closed())
        store_relaxed(&changed, true);
    for (unsigned i = 0; i < count; i++)
        sum += mixed(told_apart[i] - frames[i]) * (2 * i + 1);
    return sum;
}

/* A stack that is read. */
struct reading {
    struct tape *tape;
    uintptr_t unknown; /* the last place where it did not go on by what was seen before */
    unsigned unwound;  /* frames that were read by unwind tables */
};

/* Goes on from the last frame by what was seen of its callers before. */
static bool knows_rest(struct frames *trace)
{
    struct reading *reading = trace->with;
    unsigned last = trace->count - 1;
    unsigned more = 0;
    if (trace->stacks[last] <= reading->unknown)
        return false;
    struct caller from = {(const void *)(trace->frames[last] + 1), trace->stacks[last]};
    bool known = stack_walk(reading->tape, from, trace->frames + last, trace->stacks + last,
                            trace->most - last, &more);
    if (more > 0)
        reading->unknown = trace->stacks[last + more - 1];
    reading->unwound = last + 1;
    trace->count = known ? last + more : last + 1;
    return known;
}

/* By unwind tables, at least up to the first call that is new. */
static SLOW void stack_unwind(struct frames *trace, struct reading *reading)
{
    trace->knows_rest = path_to_check(reading->tape) ? NULL : knows_rest;
    trace->with = reading;
    backtrace_fill_cheaply(trace);
    if (!trace->whole)
        reading->unwound = trace->count;
}

/* There is room for one more. How many there are then. */
static unsigned frames_keep(uintptr_t *frames, unsigned count, const struct stack_kept *kept)
{
    if (kept->whole)
        return count;
    frames[kept->inner] = PATH_CUT;
    for (unsigned i = 0; i < kept->outer; i++)
        frames[kept->inner + 1 + i] = frames[count - kept->outer + i];
    return kept->inner + 1 + kept->outer;
}

static SLOW unsigned path_read(struct tape *tape, struct caller from)
{
    uintptr_t frames[FRAMES_READ + 1], stacks[FRAMES_READ];
    struct frames trace = {.most = FRAMES_READ, .frames = frames, .stacks = stacks};
    struct reading reading = {tape, 0, 0};
    if (path_to_check(tape) || !stack_walk(tape, from, frames, stacks, FRAMES_READ, &trace.count))
        stack_unwind(&trace, &reading);
    struct stack_read stack = {trace.count, reading.unwound, frames, stacks, 0};
    if (unlikely(load_relaxed(&were_closed)))
        stack.modules = modules_of(frames, trace.count);
    struct stack_kept kept;
    bool is_new;
    unsigned path = path_enter(tape, from, &stack, &kept, &is_new);
    if (load_relaxed(&policy.profile_scripts) != 0)
        python_look(&(struct native_stack){trace.count, frames, stacks});
    if (is_new)
        path_write_new(tape, path, frames, frames_keep(frames, trace.count, &kept));
    return path;
}

/* Names the lines of a path that the recording does not have yet. */
static void lines_write(struct tape *tape, const uintptr_t *frames, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        struct script_line *line = script_line_at(frames[i]);
        if (line == NULL || load_relaxed(&line->recorded) == paths_generation())
            continue;
        char text[PACKED_WORDS * PACKED + 1];
        struct text t;
        text_init(&t, text, sizeof text);
        profile_add_script_line(&t, line);
        words_write(tape, text, t.used);
        store_relaxed(&line->recorded, paths_generation());
    }
}

/* A path with functions of scripts, which the recording does not have yet. */
static SLOW void scripts_write(struct tape *tape, unsigned path, const struct python_stack *scripts)
{
    uintptr_t frames[FRAMES_READ], ends[FRAMES_READ], mixed[FRAMES_READ];
    struct frames trace = {.most = FRAMES_READ, .frames = frames, .stacks = ends};
    backtrace_fill_cheaply(&trace);
    struct native_stack native = {trace.count, frames, ends};
    if (!lock_enter(&cacheless_lock)) {
        path_write_new(tape, path, frames, trace.count); /* a fork holds the heap */
        return;
    }
    unsigned count = python_mix(scripts, &native, mixed, FRAMES_READ);
    lock_release(&cacheless_lock);
    lines_write(tape, mixed, count);
    path_write_new(tape, path, mixed, count);
}

static SLOW unsigned path_with_scripts(struct tape *tape, unsigned path)
{
    struct python_stack scripts;
    bool is_new;
    python_read_program(&scripts);
    if (scripts.count == 0)
        return path;
    unsigned joined = path_with(path, python_hash(&scripts), &is_new);
    if (is_new)
        scripts_write(tape, joined, &scripts);
    return joined;
}

static inline unsigned path_of(struct tape *tape, struct caller from)
{
    unsigned path;
    if (unlikely(!path_known(tape, from, &path)))
        path = path_read(tape, from);
    return unlikely(python_is_program()) ? path_with_scripts(tape, path) : path;
}

static SLOW void call_write(struct tape *tape, struct taped event)
{
    struct ring_head *head = load_acquire(&ring);
    enum ring_answer answer = event_write(tape, &event);
    if (answer != RING_TAKEN)
        recording_lost(head, answer == RING_GONE);
}

bool recorded_begin(void)
{
    if (unlikely(scavenger_calls()))
        return true;
    if (thread_is_within(THREAD_RECORDS))
        return false;
    thread_enters(THREAD_RECORDS);
    return true;
}

void recorded_end(enum event_kind kind, void *p, size_t n, size_t align, struct caller from)
{
    if (unlikely(scavenger_calls())) {
        unnoted_add(p);
        return;
    }
    if (unlikely((uintptr_t)from.code - load_relaxed(&loader_start) < load_relaxed(&loader_bytes)))
        loader_calls();
    struct tape *tape = tape_mine();
    unsigned path = likely(tape != NULL) ? path_of(tape, from) : PATH_NONE;
    bool simple = likely(tape != NULL) && likely(align <= 1) && likely(n <= UINT32_MAX);
    if (!simple || unlikely(!tape_put(tape, kind, p, path, n)))
        call_write(tape,
                   (struct taped){.kind = kind, .path = path, .p = p, .bytes = n, .align = align});
    thread_leaves(THREAD_RECORDS);
}

void recorded_end_realloc(const void *former, void *p, size_t n, struct caller from)
{
    if (p != NULL && unnoted_forget(former)) {
        recorded_end(EVENT_MALLOC, p, n, 1, from);
        return;
    }
    struct tape *tape = tape_mine();
    unsigned path = tape != NULL ? path_of(tape, from) : PATH_NONE;
    bool moved = former != p;
    call_write(tape, (struct taped){.kind = moved ? EVENT_REALLOC : EVENT_RESIZE,
                                    .path = path,
                                    .p = p,
                                    .from = moved ? former : NULL,
                                    .bytes = n});
    thread_leaves(THREAD_RECORDS);
}

SLOW void recorded_free(const void *p)
{
    if (unnoted_forget(p) || unlikely(thread_is_within(THREAD_RECORDS)) ||
        unlikely(scavenger_calls()))
        return;
    if (orders_waiting())
        orders_obey(thread_cache()); /* the slow path proper may not come for long */
    thread_enters(THREAD_RECORDS);
    struct tape *tape = tape_mine();
    if (unlikely(tape == NULL) || unlikely(!tape_put(tape, EVENT_FREE, p, PATH_NONE, 0)))
        call_write(tape, (struct taped){.kind = EVENT_FREE, .p = p});
    thread_leaves(THREAD_RECORDS);
}

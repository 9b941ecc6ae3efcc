/*
 *   python_read             the frames, outside of locks
 *     interpreter_of          found once: a module that exports Python's names
 *     thread_now              the calling thread's state
 *     frames_read
 *   python_mix              their functions and lines, in a call of the allocator
 *     line_of_frame
 *       line_of_place         known by a hash, or else place_note, line_in_table
 */
#include "profile/python.h"

#include "base/atomic.h"
#include "base/memory.h"
#include "base/text.h"
#include "profile/noted.h"
#include "profile/peek.h"
#include "profile/python_layouts.h"

static struct interpreter {
    uintptr_t start, end;    /* of its module */
    const void *dynamic;     /* the same */
    void *(*thread)(void);   /* the calling thread's state, or null; it may not hold the GIL */
    int (*finalizing)(void); /* whether states of other threads are being freed, or were */
    void *(*at_work)(void);  /* up to 3.11: the state that holds it */
    uintptr_t code, text;    /* the types of code objects and of strings */
    struct range {
        uintptr_t start, end;
    } evaluator,  /* a function, but for parts of it that lie elsewhere */
        mains[2]; /* of a program that is an interpreter; the first may be a part of the second */
    const struct python_layout *layout;
} python;

static bool is_program; /* it is no part of another program; atomic */

/* Of `python`: who finds it writes it, and then says so. Atomic. */
static enum { NOT_FOUND, BEING_WRITTEN, FOUND } found;

/* ---- the interpreter ---- */

static uintptr_t symbol(const struct module *module, const char *name)
{
    size_t bytes;
    return (uintptr_t)module_symbol(module, name, &bytes);
}

static struct range range_of(const struct module *module, const char *name)
{
    size_t bytes = 0;
    uintptr_t start = (uintptr_t)module_symbol(module, name, &bytes);
    return (struct range){start, start + bytes};
}

#define MINOR(version) ((version) >> 16 & 0xff)
#define MAJOR(version) ((version) >> 24)
#define RELEASED(version) (((version) >> 4 & 15) >= 0xc) /* or a candidate for it */

/* Its number as headers have it. Before 3.11 it is in no variable, and each version has functions
 * that the one before it lacks. */
static uint64_t version_of(const struct module *module)
{
    const unsigned long *version = (const unsigned long *)symbol(module, "Py_Version");
    if (version != NULL)
        return *version;
    if (symbol(module, "PyIter_Send") != 0)
        return 0x030a00f0;
    return symbol(module, "PyInterpreterState_Get") != 0 ? 0x030900f0 : 0;
}

/* What 3.13 and later begin their state with, for debuggers. */
struct described {
    char cookie[8];
    uint64_t version, free_threaded;
};

/* Objects of such a build have more fields. */
static bool is_free_threaded(const struct module *module)
{
    const struct described *described = (const struct described *)symbol(module, "_PyRuntime");
    return described != NULL && text_begins("xdebugpy", described->cookie, 8) &&
           described->free_threaded != 0;
}

static bool interpreter_in(const struct module *module, struct interpreter *one)
{
    uintptr_t thread = symbol(module, "PyGILState_GetThisThreadState");
    if (thread == 0)
        return false;
    uint64_t version = version_of(module);
    const struct python_layout *layout = python_layout(MINOR(version), is_free_threaded(module));
    uintptr_t at_work = symbol(module, "_PyThreadState_UncheckedGet");
    uintptr_t finalizing = symbol(module, "_Py_IsFinalizing"); /* up to 3.12 */
    if (finalizing == 0)
        finalizing = symbol(module, "Py_IsFinalizing");
    *one = (struct interpreter){
        .start = module->start,
        .end = module->end,
        .dynamic = module->dynamic,
        .thread = (void *(*)(void))thread,
        .finalizing = (int (*)(void))finalizing,
        .at_work = (void *(*)(void))at_work,
        .code = symbol(module, "PyCode_Type"),
        .text = symbol(module, "PyUnicode_Type"),
        .evaluator = range_of(module, "_PyEval_EvalFrameDefault"),
        .mains = {range_of(module, "Py_RunMain"), range_of(module, "Py_BytesMain")},
        .layout = layout};
    return MAJOR(version) == 3 && RELEASED(version) && layout != NULL && one->code != 0 &&
           one->text != 0 && finalizing != 0 && (layout->thread_status != 0 || at_work != 0);
}

static bool is_within(uintptr_t address, uintptr_t start, uintptr_t end)
{
    return address - start < end - start;
}

static void interpreter_found(const struct interpreter *one)
{
    unsigned before = NOT_FOUND;
    if (!__atomic_compare_exchange_n((unsigned *)&found, &before, BEING_WRITTEN, false,
                                     __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        return;
    python = *one;
    store_release(&found, FOUND);
}

/* The modules that the stack passes through are looked at until one is an interpreter. */
static void interpreter_search(const struct native_stack *native)
{
    struct module module = {0};
    struct interpreter one;
    for (unsigned i = 0; i < native->count; i++) {
        if (is_within(native->frames[i], module.start, module.end) ||
            !module_at(native->frames[i], &module))
            continue;
        if (interpreter_in(&module, &one)) {
            interpreter_found(&one);
            return;
        }
    }
}

/* A program may close the library again, and then another one may lie there. */
static bool interpreter_stays(void)
{
    struct module module;
    return module_at(python.start, &module) && module.start == python.start &&
           module.end == python.end && module.dynamic == python.dynamic;
}

/* Null where none has a frame in the stack. */
static const struct interpreter *interpreter_of(const struct native_stack *native)
{
    if (load_acquire(&found) != FOUND)
        interpreter_search(native);
    if (load_acquire(&found) != FOUND)
        return NULL;
    for (unsigned i = 0; i < native->count; i++)
        if (is_within(native->frames[i], python.start, python.end))
            return interpreter_stays() ? &python : NULL;
    return NULL;
}

/* ---- frames ---- */

#define AT_WORK_BIT 4 /* in its status */

static bool holds_gil(const struct interpreter *py, const struct peek *peek, uintptr_t thread)
{
    size_t status = py->layout->thread_status;
    return status != 0 ? (peek_half(peek, thread + status) >> AT_WORK_BIT & 1) != 0
                       : thread == (uintptr_t)py->at_work();
}

/* A thread's frames are changed by it alone, and keep what they refer to, whether it holds the GIL
 * or not: much that allocates gives it up. But at Python's end another thread may free them. */
static uintptr_t thread_now(const struct interpreter *py, const struct peek *peek)
{
    uintptr_t thread = (uintptr_t)py->thread();
    bool stays = thread != 0 && (!py->finalizing() || holds_gil(py, peek, thread));
    return stays ? thread : 0;
}

/* Where the instructions begin that a frame runs: a thread may have a copy of them. */
static uintptr_t instructions_of(const struct python_layout *layout, const struct peek *peek,
                                 uintptr_t frame, uintptr_t code)
{
    if (layout->code_copies == 0)
        return code + layout->code_begin;
    uintptr_t copies = peek_word(peek, code + layout->code_copies);
    uint32_t copy = peek_half(peek, frame + layout->frame_copy);
    bool is_there = copy < peek_word(peek, copies);
    return is_there ? peek_word(peek, copies + PYTHON_COPIES_AT + copy * sizeof(uintptr_t)) : 0;
}

/* Of the frame at this address; false where it is none of a function, or not yet. */
static bool frame_read(const struct interpreter *py, const struct peek *peek, uintptr_t frame,
                       struct python_frame *to)
{
    const struct python_layout *layout = py->layout;
    uintptr_t code = peek_word(peek, frame + layout->frame_code) & ~(uintptr_t)7; /* tags */
    if (peek_word(peek, code + layout->type) != py->code)
        return false;
    to->code = code;
    if (layout->code_begin == 0) {
        to->at = peek_half(peek, frame + layout->frame_at) * layout->units;
        return true;
    }
    uintptr_t at =
        peek_word(peek, frame + layout->frame_at) - instructions_of(layout, peek, frame, code);
    to->at = (uint32_t)at;
    return at <= INT32_MAX && at / 2 >= peek_half(peek, code + layout->code_complete);
}

struct walk {
    const struct interpreter *py;
    const struct peek *peek;
    struct python_stack *stack;
    uintptr_t frame, cframe;
    unsigned group; /* where the frames of one call of the evaluator begin */
};

static void group_end(struct walk *walk, uintptr_t anchor)
{
    for (; walk->group < walk->stack->count; walk->group++)
        walk->stack->frames[walk->group].anchor = anchor;
}

/* After a frame: whether the evaluator was called for it. */
static bool is_entry(const struct walk *walk)
{
    size_t entry = walk->py->layout->frame_entry;
    return entry == 0 || peek_byte(walk->peek, walk->frame + entry) != 0;
}

static bool is_shim(const struct walk *walk)
{
    size_t owner = walk->py->layout->frame_owner;
    return owner != 0 && peek_byte(walk->peek, walk->frame + owner) >= PYTHON_SHIM;
}

/* Since 3.12 a shim ends a group, and lies on the processor's stack; before it, a cframe does. */
static void frame_add(struct walk *walk)
{
    const struct python_layout *layout = walk->py->layout;
    struct python_stack *stack = walk->stack;
    if (is_shim(walk)) {
        group_end(walk, walk->frame);
        return;
    }
    if (frame_read(walk->py, walk->peek, walk->frame, &stack->frames[stack->count]))
        stack->count++;
    if (layout->frame_owner == 0 && is_entry(walk)) {
        group_end(walk, walk->cframe);
        walk->cframe = peek_word(walk->peek, walk->cframe + layout->cframe_previous);
    }
}

#define ANCHOR_UNKNOWN 1 /* of the outermost frames, whose shim was not reached */
#define STEPS_MOST (4 * PYTHON_FRAMES_MOST) /* shims and frames that are being made, too */

static void frames_read(struct walk *walk, uintptr_t thread)
{
    const struct python_layout *layout = walk->py->layout;
    if (layout->thread_cframe != 0)
        walk->cframe = peek_word(walk->peek, thread + layout->thread_cframe);
    walk->frame = layout->cframe_has_frame
                      ? peek_word(walk->peek, walk->cframe + layout->cframe_frame)
                      : peek_word(walk->peek, thread + layout->thread_frame);
    unsigned steps = 0;
    while (walk->frame != 0 && walk->stack->count < PYTHON_FRAMES_MOST && steps++ < STEPS_MOST) {
        frame_add(walk);
        walk->frame = peek_word(walk->peek, walk->frame + layout->frame_previous);
    }
    group_end(walk, layout->frame_owner != 0 ? ANCHOR_UNKNOWN : walk->cframe);
}

static void program_look(const struct interpreter *py, const struct native_stack *native)
{
    const struct range *mains = py->mains;
    for (unsigned i = 0; !load_relaxed(&is_program) && i < native->count; i++)
        if (is_within(native->frames[i], mains[0].start, mains[0].end) ||
            is_within(native->frames[i], mains[1].start, mains[1].end))
            store_release(&is_program, true);
}

bool python_is_program(void) { return load_acquire(&is_program); }

bool python_ends(void)
{
    return load_acquire(&is_program) && interpreter_stays() && python.finalizing();
}

static void thread_read(const struct interpreter *py, struct python_stack *stack)
{
    struct peek peek = peek_begin();
    struct walk walk = {.py = py, .peek = &peek, .stack = stack};
    uintptr_t thread = thread_now(py, &peek);
    if (thread != 0)
        frames_read(&walk, thread);
}

void python_read(struct python_stack *stack, const struct native_stack *native)
{
    stack->count = 0;
    const struct interpreter *py = interpreter_of(native);
    if (py == NULL)
        return;
    program_look(py, native);
    thread_read(py, stack);
}

void python_look(const struct native_stack *native)
{
    const struct interpreter *py = python_is_program() ? NULL : interpreter_of(native);
    if (py != NULL)
        program_look(py, native);
}

void python_read_program(struct python_stack *stack)
{
    stack->count = 0;
    if (python_is_program() && interpreter_stays())
        thread_read(&python, stack);
}

/* ---- functions and lines ---- */

/* Bits of a string's state: what a letter's bytes are, and whether they follow the object. */
#define KIND(state) ((state)&7)
#define COMPACT(state) (((state) >> 3 & 1) != 0)
#define ASCII(state) (((state) >> 4 & 1) != 0)

static uint32_t letter_of(const void *letters, unsigned kind, size_t i)
{
    return kind == 1   ? ((const uint8_t *)letters)[i]
           : kind == 2 ? ((const uint16_t *)letters)[i]
                       : ((const uint32_t *)letters)[i];
}

/* Letters, or bytes, of an object. */
struct span {
    const void *start; /* null where there are none */
    size_t count;
    unsigned kind; /* bytes of each */
};

/* Of a string, at most `most`; `kind` is 0 where it is none, or not one piece. */
static struct span string_at(const struct peek *peek, uintptr_t text, size_t most)
{
    const struct python_layout *layout = python.layout;
    uint32_t state = peek_half(peek, text + layout->text_state) >> layout->text_kind;
    unsigned kind = KIND(state);
    if (peek_word(peek, text + layout->type) != python.text || !COMPACT(state) ||
        (kind != 1 && kind != 2 && kind != 4))
        return (struct span){0};
    size_t count = smaller(peek_word(peek, text + layout->length), most);
    uintptr_t at = text + (ASCII(state) ? layout->text_ascii : layout->text_compact);
    return (struct span){peek_at(peek, at, count * kind), count, kind};
}

static struct span bytes_at(const struct peek *peek, uintptr_t bytes)
{
    const struct python_layout *layout = python.layout;
    size_t count = peek_word(peek, bytes + layout->length);
    return (struct span){peek_at(peek, bytes + layout->bytes, count), count, 1};
}

static void name_add(struct script_name *name, const struct span *span)
{
    for (size_t i = 0; span->start != NULL && i < span->count; i++)
        script_name_add(name, letter_of(span->start, span->kind, i));
}

/* What tells a frame's function and line. */
struct place {
    struct span function, file, lines;
    uint32_t first, at;
};

static uintptr_t place_note(const struct place *place)
{
    char function_bytes[SCRIPT_FUNCTION_MOST], file_bytes[SCRIPT_FILE_MOST];
    struct script_name function = {.most = sizeof function_bytes, .bytes = function_bytes};
    struct script_name file = {.most = sizeof file_bytes, .bytes = file_bytes};
    name_add(&function, &place->function);
    name_add(&file, &place->file);
    uint32_t line = place->lines.start != NULL
                        ? line_in_table(python.layout->line_format, place->lines.start,
                                        place->lines.count, place->first, place->at)
                        : place->first;
    return script_line_note(&function, &file, line);
}

static uint64_t hash_name(uint64_t hash, const struct span *name)
{
    return bytes_hash(hash, name->start, name->start != NULL ? name->count * name->kind : 0);
}

/* Of a table of lines, which may have thousands, its length, begin and end. Another function of the
 * same name, file and first line seldom has the same. */
#define HASHED ((size_t)64)

static uint64_t hash_lines(uint64_t hash, const struct span *lines)
{
    size_t bytes = lines->start != NULL ? lines->count : 0;
    const char *start = lines->start;
    if (bytes <= 2 * HASHED)
        return bytes_hash(hash, start, bytes);
    hash = bytes_hash(hash ^ bytes, start, HASHED);
    return bytes_hash(hash, start + bytes - HASHED, HASHED);
}

/* Addresses of lines by a hash of all that tells them, so that names and tables are read once. An
 * object that is freed may leave its address to another: so what they hold counts, not where. */
#define RECENT 1024
static struct {
    uint64_t hash;
    uintptr_t line;
} recent[RECENT]; /* lock: script lines */

static uint64_t place_hash(const struct place *place)
{
    uint64_t hash = mixed((uint64_t)place->first << 32 | place->at);
    return hash_lines(hash_name(hash_name(hash, &place->function), &place->file), &place->lines);
}

static uintptr_t line_of_place(const struct place *place)
{
    uint64_t hash = place_hash(place);
    size_t at = hash % RECENT;
    if (recent[at].hash != hash || recent[at].line == 0) {
        recent[at].hash = hash;
        recent[at].line = place_note(place);
    }
    return recent[at].line;
}

/* False where names can't be read. */
static bool place_read(const struct peek *peek, const struct python_frame *frame,
                       struct place *place)
{
    const struct python_layout *layout = python.layout;
    uintptr_t code = frame->code;
    *place = (struct place){
        .function =
            string_at(peek, peek_word(peek, code + layout->code_name), SCRIPT_FUNCTION_MOST),
        .file = string_at(peek, peek_word(peek, code + layout->code_file), SCRIPT_FILE_MOST),
        .lines = bytes_at(peek, peek_word(peek, code + layout->code_lines)),
        .first = peek_half(peek, code + layout->code_first),
        .at = frame->at};
    return place->function.kind != 0 && place->file.kind != 0;
}

static uintptr_t line_of_frame(const struct peek *peek, const struct python_frame *frame)
{
    struct place place;
    return place_read(peek, frame, &place) ? line_of_place(&place) : 0;
}

/* ---- a stack's hash ---- */

/* Hashes of frames by what can be read faster: where their objects are, and the hashes that Python
 * has of the names, without which an object in the place of another would be taken for it. An entry
 * of which two threads each wrote a part does not fit its key. Atomic. */
static struct {
    uint64_t check; /* key ^ hash */
    uint64_t hash;
} quick[RECENT];

/* 0 where Python has no hash of the function's name. */
static uint64_t quick_key(const struct peek *peek, const struct python_frame *frame)
{
    const struct python_layout *layout = python.layout;
    uintptr_t code = frame->code;
    uintptr_t name = peek_word(peek, code + layout->code_name);
    uintptr_t file = peek_word(peek, code + layout->code_file);
    uintptr_t named = peek_word(peek, name + layout->text_hash);
    uint64_t filed = peek_word(peek, file + layout->text_hash);
    if (named + 1 <= 1)
        return 0;
    if (filed + 1 <= 1) {
        struct span span = string_at(peek, file, SCRIPT_FILE_MOST);
        filed = hash_name(0, &span);
    }
    uint64_t words[] = {code,
                        frame->at,
                        named,
                        filed,
                        peek_word(peek, code + layout->code_lines),
                        peek_half(peek, code + layout->code_first)};
    return bytes_hash(name, (const char *)words, sizeof words) | 1;
}

static uint64_t frame_hash(const struct peek *peek, const struct python_frame *frame)
{
    struct place place;
    uint64_t key = quick_key(peek, frame);
    size_t at = key >> 1 & (RECENT - 1);
    uint64_t hash = load_relaxed(&quick[at].hash);
    if (key != 0 && (load_relaxed(&quick[at].check) ^ hash) == key)
        return hash;
    hash = place_read(peek, frame, &place) ? place_hash(&place) : 0;
    if (key != 0) {
        store_relaxed(&quick[at].hash, hash);
        store_relaxed(&quick[at].check, key ^ hash);
    }
    return hash;
}

uint64_t python_hash(const struct python_stack *stack)
{
    struct peek peek = peek_begin();
    uint64_t hash = 0;
    for (unsigned i = 0; i < stack->count; i++)
        hash = mixed(hash * MIXED_STEP ^ frame_hash(&peek, &stack->frames[i]));
    return hash;
}

/* ---- native frames and others ---- */

struct mixing {
    struct peek peek;
    const struct python_stack *stack;
    unsigned next; /* of its frames */
    uintptr_t *frames;
    unsigned count, most;
};

static void mixed_add(struct mixing *mixing, uintptr_t frame)
{
    if (frame != 0 && mixing->count < mixing->most)
        mixing->frames[mixing->count++] = frame;
}

/* The next frame, and those that the same call of the evaluator runs. */
static void group_add(struct mixing *mixing)
{
    const struct python_stack *stack = mixing->stack;
    uintptr_t anchor = stack->frames[mixing->next].anchor;
    do
        mixed_add(mixing, line_of_frame(&mixing->peek, &stack->frames[mixing->next]));
    while (++mixing->next < stack->count && anchor != 0 &&
           stack->frames[mixing->next].anchor == anchor);
}

/* Whether the native frame is the evaluator's that runs the next frame. Where the anchor is not
 * known, any of the evaluator's is. */
static bool is_evaluator(const struct mixing *mixing, const struct native_stack *native, unsigned i)
{
    uintptr_t anchor = mixing->stack->frames[mixing->next].anchor;
    if (anchor <= ANCHOR_UNKNOWN)
        return is_within(native->frames[i], python.evaluator.start, python.evaluator.end);
    return anchor >= native->ends[i] && (i + 1 == native->count || anchor < native->ends[i + 1]);
}

/* Whether the native frame of the next one's evaluator would be further in than this stack's end.
 */
static bool is_left_out(const struct mixing *mixing, uintptr_t end)
{
    if (mixing->next == mixing->stack->count)
        return false;
    uintptr_t anchor = mixing->stack->frames[mixing->next].anchor;
    return anchor > ANCHOR_UNKNOWN && anchor < end;
}

unsigned python_mix(const struct python_stack *stack, const struct native_stack *native,
                    uintptr_t *frames, unsigned most)
{
    struct mixing mixing = {.peek = peek_begin(), .stack = stack, .most = most};
    mixing.frames = frames;
    script_lines_enter();
    for (unsigned i = 0; i < native->count; i++) {
        while (is_left_out(&mixing, native->ends[i]))
            group_add(&mixing);
        if (mixing.next < stack->count && is_evaluator(&mixing, native, i))
            group_add(&mixing);
        else
            mixed_add(&mixing, native->frames[i]);
    }
    while (mixing.next < stack->count && mixing.count < most)
        group_add(&mixing); /* the native stack was not read to its end */
    script_lines_leave();
    return mixing.count;
}

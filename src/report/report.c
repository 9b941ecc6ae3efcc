#include "report/report.h"

#include <string.h>

#include "back/huge.h"
#include "back/map.h"
#include "back/superslabs.h"
#include "base/atomic.h"
#include "base/policy.h"
#include "base/text.h"
#include "front/cache.h"
#include "heap/hardening.h"
#include "heap/slab.h"
#include "os/backtrace.h"
#include "os/lock.h"
#include "os/module.h"
#include "os/os.h"
#include "profile/guarded.h"
#include "profile/samples.h"

/* ---- what lies at an address ---- */

static struct address address_in_slab(uintptr_t address, const struct slab *slab)
{
    const struct size_class *c = &size_classes[slab->cls];
    uintptr_t base = (uintptr_t)slab->base;
    size_t number = (address - base) / c->size;
    enum address_kind kind = number < c->blocks ? ADDRESS_CLASS : ADDRESS_SLAB_END;
    return (struct address){kind, base + number * c->size, c->size, base};
}

/* The slab of the slice at `start`, where it is one that holds `address`. Another thread may retire
 * it meanwhile: then what its descriptor says need not be a slab's. */
static const struct slab *slab_around(uintptr_t address, const void *start)
{
    const struct slab *slab = map_owner(start);
    if (slab == NULL || slab->cls >= CLASSES || map_owner(start) != slab)
        return NULL;
    size_t bytes = size_classes[slab->cls].slices * SLICE;
    return address - (uintptr_t)slab->base < bytes ? slab : NULL;
}

static struct address address_near(uintptr_t address, const void *start)
{
    struct address none = {ADDRESS_ELSEWHERE, 0, 0, 0};
    unsigned bin = map_bin(start);
    if (bin_of_slab(bin)) {
        const struct slab *slab = slab_around(address, start);
        if (slab == NULL)
            return none;
        if (size_classes[slab->cls].blocks > 1)
            return address_in_slab(address, slab);
        if (bin == BIN_WHOLE_FREE) {
            none.kind = ADDRESS_DIRTY;
            return none;
        }
        return (struct address){ADDRESS_LARGE, (uintptr_t)start, slab->usable, 0};
    }
    start = huge_start(start);
    if (start == NULL)
        return none;
    size_t usable = huge_usable(start);
    if (address - (uintptr_t)start >= round_up(usable, SLICE))
        return none;
    return (struct address){ADDRESS_LARGE, (uintptr_t)start, usable, 0};
}

/* The slice of the nearest block that begins at or below p. */
static const void *slice_below(const void *p)
{
    const void *slice = map_below(p);
    const void *huge = slice == NULL ? NULL : huge_start(slice);
    return huge > p ? map_below((const char *)slice - 1) : slice;
}

COLD struct address address_describe(const void *p)
{
    uintptr_t address = (uintptr_t)p;
    struct address place = {ADDRESS_ELSEWHERE, 0, 0, 0};
    const struct guarded_block *guarded = guarded_holds(p) ? guarded_near(p) : NULL;
    if (guarded != NULL)
        return (struct address){ADDRESS_GUARDED, (uintptr_t)load_relaxed(&guarded->start),
                                load_relaxed(&guarded->bytes), 0};
    const void *start = slice_below(p);
    if (start != NULL)
        place = address_near(address, start);
    if (place.kind == ADDRESS_ELSEWHERE && huge_is_dirty(p))
        place.kind = ADDRESS_DIRTY;
    else if (place.kind == ADDRESS_ELSEWHERE && slots_hold(p))
        place.kind = ADDRESS_VACANT;
    return place;
}

/* The slab of a block of a class that begins at p, or null. */
static const struct slab *slab_of_class(const void *p)
{
    void *owner;
    const struct slab *slab = bin_of_slab(map_find(p, &owner)) ? owner : NULL;
    bool found = slab != NULL && slab->cls < CLASS_SLICES_FIRST && slab_begins(slab, p) &&
                 !guard_pages_bar(p, slab->cls);
    return found ? slab : NULL;
}

/* Where it is noted of a block that has no class; null where it is not. */
static uint8_t *note_of(const void *p)
{
    if (guarded_holds(p))
        return guarded_maker(p);
    struct huge *h = huge_at(p);
    return h != NULL ? &h->maker : NULL;
}

enum maker maker_of(const void *p)
{
    if (!hardening.functions)
        return MAKER_UNKNOWN;
    const struct slab *slab = slab_of_class(p);
    if (slab != NULL)
        return canary_maker(p, slab->cls);
    if (zero_sized_holds(p))
        return MAKER_MALLOC;
    const uint8_t *note = note_of(p);
    return note != NULL ? (enum maker)load_relaxed(note) : MAKER_UNKNOWN;
}

void maker_note(void *p, enum maker maker)
{
    const struct slab *slab = slab_of_class(p);
    uint8_t *note = slab == NULL ? note_of(p) : NULL;
    if (slab != NULL)
        canary_mark(p, slab->cls, maker);
    else if (note != NULL)
        store_relaxed(note, (uint8_t)maker);
}

/* ---- a report ----
 *
 *   report_misuse -> begin: one thread at a time
 *                 -> head: what, address, thread; out before the stack, which may be damaged
 *                 -> tail: backtrace, what to do
 *                 -> os_abort, or go on */

#define REPORTS_MOST 100 /* where the program goes on */
#define MAPPING_MOST 480
#define FRAMES_SHOWN 32

/* A report takes milliseconds, and the process ends after it. Who waits longer waits for a thread
 * that in turn waits for it (in a constructor that dlopen runs, say), or for a slow handler. */
#define WAIT_STEP 10
#define WAIT_MOST 30000

static unsigned reporter; /* atomic: the thread that reports, or has reported and ends; 0: none */
static unsigned reports;  /* the reporter; begun so far */

/* The reporter's; not on its stack, which may be small. */
static char head[1024];
static char tail[FRAMES_SHOWN * 512];
static char mapping[MAPPING_MOST];
static uintptr_t frames[FRAMES_SHOWN];
static struct frames trace;

/* Nobody waits here: the thread may have been interrupted while it held a lock. */
static const struct site *sampled_by(const void *p)
{
    if (!load_relaxed(&profile_used) || !lock_try(&cacheless_lock))
        return NULL;
    const struct site *site = samples_site_of(p);
    lock_release(&cacheless_lock);
    return site;
}

static const char gone[] SELDOM = "no block is in use here; most likely it is free already (freed "
                                  "twice, or used after it was freed)";
static const char twice[] SELDOM =
    "find the other call that freed it; valgrind and AddressSanitizer show both";
static const char moved[] SELDOM =
    "pass the pointer that malloc returned, not one that was moved from it";
static const char who_wrote[] SELDOM =
    "find what wrote there; valgrind and AddressSanitizer show the write itself";
static const char in_use[] SELDOM = "pass an address in a block that is in use, or its end";

/* What is wrong, and what to do; null: that depends on what lies there. */
static const struct {
    const char *words, *advice;
} misuses[] = {
    [MISUSE_NONE] = {"", NULL},
    [MISUSE_FOREIGN] = {"no block begins at this address", NULL},
    [MISUSE_UNALIGNED] = {"no block can begin at this address: it is not a multiple of 16", NULL},
    [MISUSE_INTERIOR] = {"this address is inside a block, not at its start", moved},
    [MISUSE_FREE] = {"this block is free already (freed twice, or used after it was freed)", twice},
    [MISUSE_SIZE] = {"the size that was said does not fit the block",
                     "pass the size, or delete the type, that the block was allocated with"},
    [MISUSE_FUNCTION] = {"this block was allocated by another kind of function", NULL},
    [MISUSE_OVERRUN] = {"something wrote beyond the end of this block, or before the next one",
                        who_wrote},
    [MISUSE_UNDERRUN] = {"something wrote before this block, or beyond the end of the one before",
                         who_wrote},
    [MISUSE_WRITTEN] = {"something wrote to this block while it was free",
                        "find who still used it; valgrind and AddressSanitizer show the write "
                        "itself"},
    [MISUSE_USED] = {"use after free: this memory was freed earlier", in_use},
    [MISUSE_BEYOND] = {"past the end of a block (buffer overflow)", in_use},
    [MISUSE_BEFORE] = {"before the start of a block (buffer underflow)", in_use},
};

/* A line of the report. */
#define LINE(text, format, ...) text_write(text, "hakmem: " format "\n", ##__VA_ARGS__)

/* What lies at the address of a wrong call. */
struct spot {
    struct address place;
    bool unmapped; /* ADDRESS_VACANT, and no memory is there */
};

static struct spot spot_of(const void *p)
{
    struct spot spot = {.place = address_describe(p)};
    spot.unmapped = spot.place.kind == ADDRESS_VACANT &&
                    os_mapping(p, mapping, sizeof mapping) == OS_NOT_MAPPED;
    return spot;
}

/* Slabs and large blocks leave the map when they are free, and with them what the map could say. */
static bool was_freed(const struct wrong_call *call, const struct spot *spot)
{
    return call->what == MISUSE_FOREIGN &&
           (spot->place.kind == ADDRESS_DIRTY ||
            (spot->place.kind == ADDRESS_VACANT && !spot->unmapped));
}

/* "this block was allocated by new; free is only for blocks of malloc" */
static void add_functions(struct text *text, const struct wrong_call *call)
{
    static const char *const makers[] = {"malloc or a function like it", "new", "new[]"};
    bool deletes = strncmp(call->function, "delete", 6) == 0;
    text_write(text, "this block was allocated by %s; %s is only for blocks of %s",
               makers[call->maker], call->function,
               !deletes                 ? "malloc"
               : call->function[6] == 0 ? "new"
                                        : "new[]");
}

static void add_call(struct text *text, const struct wrong_call *call, const char *what)
{
    text_write(text, "hakmem: %s%s%#lx", call->function, call->fault ? " of " : "(",
               (uintptr_t)call->p);
    if (call->what == MISUSE_SIZE)
        text_write(text, ", %zu", call->size);
    text_add(text, call->fault ? ": " : "): ");
    if (call->what == MISUSE_FUNCTION && call->maker != MAKER_UNKNOWN)
        add_functions(text, call);
    else
        text_add(text, what);
    text_add(text, "\n");
}

/* ---- the address ---- */

/* "the start of", or "24 bytes into". */
static void add_offset(struct text *text, size_t offset)
{
    if (offset == 0)
        text_add(text, "the start of ");
    else
        text_write(text, "%zu bytes into ", offset);
}

static void add_block(struct text *text, const struct address *place, size_t offset)
{
    bool behind = place->kind == ADDRESS_SLAB_END;
    if (behind) {
        text_add(text, "behind the last block of");
    } else {
        add_offset(text, offset);
        text_write(text, "%s%zu bytes at %#lx",
                   place->kind == ADDRESS_CLASS ? "a block of class " : "a large block of ",
                   place->size, place->start);
    }
    if (place->slab != 0)
        text_write(text, "%s the slab at %#lx", behind ? "" : ", in", place->slab);
}

/* The address may lie on either side of it. */
static void add_guarded(struct text *text, const struct address *place, uintptr_t address)
{
    uintptr_t end = place->start + place->size;
    if (address < place->start)
        text_write(text, "%lu bytes before ", place->start - address);
    else if (address >= end)
        text_write(text, "%lu bytes past the end of ", address - end);
    else
        add_offset(text, address - place->start);
    text_write(text, "a guarded block of %zu bytes at %#lx", place->size, place->start);
}

static void add_elsewhere(struct text *text, const void *p)
{
    text_add(text, "not in a block of hakmem's");
    struct text module;
    text_init(&module, mapping, sizeof mapping);
    if (module_add_name(&module, (uintptr_t)p)) {
        text_write(text, "; code or static memory of a module:%s", module.start);
        return;
    }
    switch (os_mapping(p, mapping, sizeof mapping)) {
    case OS_MAPPED:
        text_write(text, "; the memory there is %.*s", MAPPING_MOST, mapping);
        break;
    case OS_NOT_MAPPED:
        text_add(text, "; there is no memory at it");
        break;
    case OS_MAPPED_UNKNOWN:
        break;
    }
}

static void add_address(struct text *text, const struct spot *spot, const void *p)
{
    const struct address *place = &spot->place;
    text_add(text, "hakmem: address: ");
    switch (place->kind) {
    case ADDRESS_ELSEWHERE:
        add_elsewhere(text, p);
        break;
    case ADDRESS_VACANT:
        text_add(text, spot->unmapped ? "where hakmem's memory may lie, but there is none at it "
                                        "now: wild, or given back meanwhile"
                                      : "in hakmem's memory, where no block is in use now");
        break;
    case ADDRESS_DIRTY:
        text_add(text, "in memory of a large block that was freed");
        break;
    case ADDRESS_SLAB_END:
    case ADDRESS_CLASS:
    case ADDRESS_LARGE:
        add_block(text, place, (uintptr_t)p - place->start);
        break;
    case ADDRESS_GUARDED:
        add_guarded(text, place, (uintptr_t)p);
        break;
    }
    text_add(text, "\n");
}

/* ---- who, and what to do ---- */

static void add_thread(struct text *text, unsigned me)
{
    char name[OS_THREAD_NAME];
    os_thread_called(name);
    LINE(text, "thread: %u (%.*s)", me, OS_THREAD_NAME, name);
}

static void add_frames(struct text *text, const uintptr_t *from, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uintptr_t frame = load_relaxed(&from[i]);
        text_write(text, "hakmem: #%zu %#lx", i, frame);
        module_add_name(text, frame);
        text_add(text, "\n");
    }
}

static void take_frames(void *unused)
{
    (void)unused;
    backtrace_fill(&trace);
}

static void add_backtrace(struct text *text, const void *caller)
{
    if (!backtrace_possible()) {
        LINE(text, "no backtrace in this build; a debugger shows who called");
        return;
    }
    trace = (struct frames){.caller = caller, .most = FRAMES_SHOWN, .frames = frames};
    bool whole = os_try(take_frames, NULL);
    add_frames(text, frames, trace.count);
    if (!whole || trace.count == 0)
        LINE(text, "the backtrace ends here: the stack is damaged");
    LINE(text, "(addr2line -Cfpie MODULE OFFSET tells the line of a frame%s)",
         trace.count == FRAMES_SHOWN ? "; further frames are left out" : "");
}

static void add_past_call(struct text *text, const char *what, const struct guarded_call *call)
{
    size_t depth = load_acquire(&call->depth);
    LINE(text, "this block was %s by thread %u%s", what, load_relaxed(&call->thread),
         depth > 0 ? " at" : ", whose stack is not known");
    add_frames(text, call->frames, smaller(depth, GUARDED_FRAMES));
}

/* Who allocated the block, and who freed it, as far as it is known: of guarded blocks, and of those
 * that a heap profile has sampled and that are in use. */
static void add_history(struct text *text, const struct address *place, const void *p)
{
    const struct guarded_block *guarded = guarded_holds(p) ? guarded_near(p) : NULL;
    if (guarded != NULL) {
        add_past_call(text, "allocated", &guarded->allocated);
        if (load_relaxed(&guarded->freed))
            add_past_call(text, "freed", &guarded->freed_by);
        return;
    }
    const struct site *site = sampled_by((const void *)place->start);
    if (site == NULL)
        return;
    LINE(text, "this block was allocated at");
    add_frames(text, site->frames, smaller(site->depth, FRAMES_SHOWN));
}

static const char *advice(const struct wrong_call *call, const struct address *place)
{
    static const char *const functions[] = {
        "free it by free", "free it by delete", "free it by delete[]",
        "free it by the function that belongs to the one that allocated it"};
    if (call->what == MISUSE_FUNCTION)
        return functions[call->maker];
    if (call->fault)
        return "correct this access; the stacks above show who allocated and freed the block";
    if (misuses[call->what].advice != NULL)
        return misuses[call->what].advice;
    if (place->kind == ADDRESS_ELSEWHERE)
        return "pass only what malloc and its kin returned; other memory goes back to whoever gave "
               "it";
    return place->kind == ADDRESS_VACANT || place->kind == ADDRESS_DIRTY ? twice : moved;
}

static void add_advice(struct text *text, const struct wrong_call *call,
                       const struct address *place)
{
    if (call->late)
        LINE(text, "found late: the wrong call came before the one shown, perhaps in another "
                   "thread");
    LINE(text, "what to do: %s", advice(call, place));
    LINE(text, "%s",
         policy.abort_on_misuse && call->fault ? "the program ends here, unless it handles SIGSEGV"
         : policy.abort_on_misuse              ? "the program ends here (SIGABRT)"
         : call->fault               ? "the program goes on, and may touch this page from now on"
         : call->what == MISUSE_SIZE ? "the block is freed, the program goes on"
                                     : "the call is ignored, the program goes on");
}

/* ---- the whole ---- */

static void print(const struct text *text) { os_print_error(text->start, text->used); }

static void report(const struct wrong_call *given, unsigned me)
{
    struct wrong_call call = *given;
    struct spot spot = spot_of(call.p);
    const struct address *place = &spot.place;
    /* Only the first slice of a block of whole slices has an entry in the map. */
    if (call.what == MISUSE_FOREIGN && place->kind == ADDRESS_LARGE)
        call.what = MISUSE_INTERIOR;

    call.maker = call.what == MISUSE_FUNCTION ? maker_of(call.p) : MAKER_UNKNOWN;
    struct text text;
    text_init(&text, head, sizeof head);
    add_call(&text, &call, was_freed(&call, &spot) ? gone : misuses[call.what].words);
    if (call.what == MISUSE_SIZE)
        LINE(&text, "size: %zu bytes were said, the block has %zu", call.size, place->size);
    add_address(&text, &spot, call.p);
    add_thread(&text, me);
    print(&text);

    text_init(&text, tail, sizeof tail);
    add_backtrace(&text, call.caller);
    print(&text);
    text_init(&text, tail, sizeof tail);
    add_history(&text, &spot.place, call.p);
    add_advice(&text, &call, place);
    print(&text);
}

/* For a thread that can't make a whole report: it is making one, or another's never ends. */
static void report_briefly(const struct wrong_call *given)
{
    struct wrong_call call = *given;
    call.maker = MAKER_UNKNOWN;
    char line[256];
    struct text text;
    text_init(&text, line, sizeof line);
    add_call(&text, &call, misuses[call.what].words);
    print(&text);
}

/* A reporter of another process is what a fork has left here; one that ended had a handler that
 * jumped out of its end. */
static bool report_take(unsigned me)
{
    unsigned before = load_relaxed(&reporter);
    return (before == 0 || !os_thread_lives(before)) &&
           __atomic_compare_exchange_n(&reporter, &before, me, false, __ATOMIC_ACQUIRE,
                                       __ATOMIC_RELAXED);
}

/* From here on no handler runs that could come here on the same thread. */
static bool report_begin(unsigned me, sigset_t *signals)
{
    for (unsigned waited = 0; waited < WAIT_MOST; waited += WAIT_STEP) {
        os_signals_block(signals);
        if (report_take(me))
            return true;
        os_signals_restore(signals);
        os_let_pass(WAIT_STEP);
    }
    return false;
}

static void add_left(struct text *text)
{
    LINE(text, "malloc or free: the heap is locked by an earlier call of this thread, which has "
               "not returned: a signal handler interrupted it");
}

/* Of os/lock.h. Nothing here waits for a lock: the thread may have left any of them. */
COLD void lock_is_left(void)
{
    unsigned me = os_thread_id();
    sigset_t signals;
    struct text text;
    if (load_relaxed(&reporter) == me || !report_begin(me, &signals)) {
        char line[256];
        text_init(&text, line, sizeof line);
        add_left(&text);
        print(&text);
        os_die();
    }
    text_init(&text, head, sizeof head);
    add_left(&text);
    add_thread(&text, me);
    print(&text);
    text_init(&text, tail, sizeof tail);
    add_backtrace(&text, NULL);
    LINE(&text, "what to do: in a signal handler, allocate and free nothing, and do not leave it "
                "by siglongjmp or an exception, unless the signal is blocked during malloc and "
                "free");
    LINE(&text, "the program ends here (SIGABRT)");
    print(&text);
    os_signals_restore(&signals);
    os_abort();
}

COLD void report_misuse(const struct wrong_call *call)
{
    unsigned me = os_thread_id();
    sigset_t signals;
    /* In a handler of SIGABRT, which this thread's first report has raised, or after one that
     * jumped out: another report could lead there again and again. */
    if (load_relaxed(&reporter) == me || !report_begin(me, &signals)) {
        report_briefly(call);
        if (policy.abort_on_misuse && !call->fault)
            os_die();
        return;
    }
    bool end = policy.abort_on_misuse != 0 && !call->fault;
    if (end || ++reports <= REPORTS_MOST) {
        report(call, me);
    } else if (reports == REPORTS_MOST + 1) {
        struct text text;
        text_init(&text, head, sizeof head);
        LINE(&text, "further misuse is ignored, and not reported any more");
        print(&text);
    } else {
        reports--; /* it stays there, and never comes round to 0 */
    }
    if (!end)
        store_release(&reporter, 0);
    os_signals_restore(&signals);
    if (end)
        os_abort();
}

COLD void report_late(struct finding found, const void *caller)
{
    if (found.what != MISUSE_NONE)
        report_misuse(&(struct wrong_call){.function = "free",
                                           .what = found.what,
                                           .p = found.where,
                                           .caller = caller,
                                           .late = true});
}

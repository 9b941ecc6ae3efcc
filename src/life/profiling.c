#include "life/profiling.h"

#include <stdlib.h>

#include "base/atomic.h"
#include "base/policy.h"
#include "front/cache.h"
#include "heap/shards.h"
#include "os/backtrace.h"
#include "os/lock.h"
#include "os/os.h"
#include "profile/guarded.h"
#include "profile/rate.h"
#include "profile/samples.h"
#include "record/ring.h"
#include "report/report.h"

/* Forks that hold the heap for long are waited for so many times. */
#define TRIES_MOST 1000

static bool enter(unsigned tries)
{
    ASSERT(lock_none_held());
    for (unsigned waited = 0; !lock_enter(&cacheless_lock); waited++) {
        if (waited >= tries)
            return false;
        os_let_pass(1);
    }
    return true;
}

bool heap_mode_enter(bool wait) { return enter(wait ? TRIES_MOST : 0); }

COLD bool profile_switch(bool on)
{
    if (!enter(TRIES_MOST))
        return false;
    bool done = !on || (samples_start() && shards_start_sampled());
    done = done && heap_close(CLOSED_PROFILED, on);
    lock_release(&cacheless_lock);
    return done;
}

COLD bool profile_watch(void)
{
    if (!enter(TRIES_MOST))
        return false;
    samples_watch();
    lock_release(&cacheless_lock);
    return true;
}

/* ---- guarded blocks ---- */

bool guards_wait;
static size_t next;     /* when the next is due, in milliseconds; atomic */
static size_t a_second; /* as the option, or 0 where there can be none; atomic */

#define HANDLER_LOOKS 1000  /* milliseconds from one to the next */
static size_t handler_seen; /* atomic */

/* Milliseconds to the next guarded block. With half of the places in use it is twice as long, and
 * so on, so that blocks that stay do not fill all places soon. */
static size_t interval(void)
{
    size_t wanted = load_relaxed(&a_second);
    size_t unused = larger(guarded_places_free(), 1);
    return larger(1000 * GUARDED_PLACES / unused / larger(wanted, 1), 1);
}

bool guards_due(size_t now)
{
    return load_relaxed(&a_second) != 0 && (ptrdiff_t)(now - load_relaxed(&next)) >= 0;
}

static void guards_settle(bool wanted)
{
    if (!enter(0))
        return;
    heap_close(CLOSED_GUARDS, wanted);
    store_relaxed(&guards_wait, !wanted && load_relaxed(&a_second) != 0);
    lock_release(&cacheless_lock);
}

static void handler_look(size_t now)
{
    if (now - load_relaxed(&handler_seen) < HANDLER_LOOKS)
        return;
    store_relaxed(&handler_seen, now);
    fault_watch();
}

COLD void guards_taken(size_t now)
{
    handler_look(now);
    size_t pause = interval();
    bool soon = now - load_relaxed(&next) < pause;
    store_relaxed(&next, now + pause);
    if (soon && !closed_for(CLOSED_PROFILED))
        guards_settle(false);
}

COLD void guards_look_now(void)
{
    if (guards_due(os_milliseconds()))
        guards_settle(true);
}

COLD bool guards_switch(size_t wanted)
{
    if ((wanted != 0 && !fault_watch()) || !enter(TRIES_MOST))
        return false;
    bool done = (wanted == 0 || guarded_start()) && heap_close(CLOSED_GUARDS, wanted != 0);
    if (done) {
        store_relaxed(&a_second, wanted);
        store_relaxed(&next, os_milliseconds());
        store_relaxed(&guards_wait, false);
    }
    lock_release(&cacheless_lock);
    return done;
}

/* ---- the end ----
 *
 * At its end a program frees what it held: destructors of C++ and functions of atexit. A profile
 * that is written afterwards is to have it. Before all of these libc destroys the variables of the
 * thread that calls exit; the first thread's, if it ends alone, by pthread_exit, too. */

#define CALLERS_MOST 8
#define EXIT_BYTES 64 /* of code, at most; the call is the last thing in it */

static COLD void first_thread_ends(void *with)
{
    uintptr_t frames[CALLERS_MOST];
    struct frames trace = {.most = CALLERS_MOST, .frames = frames};
    (void)with;
    thread_enters(THREAD_SAMPLES);
    backtrace_fill_cheaply(&trace);
    thread_leaves(THREAD_SAMPLES);
    bool exits = false;
    for (unsigned i = 0; i < trace.count; i++)
        exits |= frames[i] - (uintptr_t)exit < EXIT_BYTES;
    if (exits && enter(0)) {
        samples_end();
        lock_release(&cacheless_lock);
    }
}

/* ---- the start ---- */

static size_t asks_libc; /* the thread that has libc call first_thread_ends, or 0; atomic */

bool profile_asks_libc(void) { return load_relaxed(&asks_libc) == thread_number(); }

COLD void profile_begin(void)
{
    static const char no_profile[] SELDOM =
        "hakmem: profile: it is off: there is no memory for it, or the "
        "system's pages are not of 4 KiB\n";
    static const char no_guards[] SELDOM =
        "hakmem: guards_a_second: no block is guarded: there is no memory for it, or the "
        "system's pages are not of 4 KiB\n";
    if ((policy.profile | policy.profile_rss) != 0 && !profile_switch(true))
        os_print_error(no_profile, sizeof no_profile - 1);
    if (policy.profile != 0) {
        store_relaxed(&asks_libc, thread_number());
        os_at_thread_end(first_thread_ends);
        store_relaxed(&asks_libc, 0);
    }
    if (policy.guards_a_second != 0 && !guards_switch(policy.guards_a_second))
        os_print_error(no_guards, sizeof no_guards - 1);
}

/* Next to which end of the block, or in it. */
static enum misuse what_is(const char *address, const struct guarded_block *block)
{
    const char *start = load_relaxed(&block->start);
    if (address < start)
        return MISUSE_BEFORE;
    return address < start + load_relaxed(&block->bytes) ? MISUSE_USED : MISUSE_BEYOND;
}

/* The access is made again: where the program is to go on, it finds memory there. */
static bool look(const struct os_fault *fault)
{
    if (!guarded_holds(fault->address))
        return false;
    const struct guarded_block *block = guarded_near(fault->address);
    if (block == NULL)
        return false;
    report_misuse(&(struct wrong_call){.function = fault->access,
                                       .what = what_is(fault->address, block),
                                       .p = fault->address,
                                       .caller = fault->code,
                                       .fault = true});
    bool goes_on = policy.abort_on_misuse == 0;
    if (goes_on)
        guarded_open(fault->address);
    return goes_on;
}

static bool at_work; /* atomic: a thread sets the handler */

COLD bool fault_watch(void)
{
    if (__atomic_exchange_n(&at_work, true, __ATOMIC_ACQUIRE))
        return true;
    bool done = os_on_fault(look);
    store_release(&at_work, false);
    return done;
}

void fault_fork_child(void)
{
    if (at_work)
        at_work = false; /* a thread that the child does not have was at it */
}

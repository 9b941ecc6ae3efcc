#include "life/upkeep.h"

#include "back/huge_pages.h"
#include "back/large.h"
#include "back/reserve.h"
#include "back/slices.h"
#include "back/slices_purge.h"
#include "base/policy.h"
#include "front/closer.h"
#include "front/owners.h"
#include "front/pocket.h"
#include "front/theft.h"
#include "heap/page_purge.h"
#include "heap/transfer.h"
#include "learn/journal.h"
#include "learn/retention.h"
#include "life/life.h"
#include "life/scavenger.h"
#include "os/lock.h"
#include "os/os.h"
#include "watch/report.h"

/* The door looks in so many times in a span, and pays back as much as was freed meanwhile at most
 * twice over: by small steps, and without end where a program only frees. */
#define STEPS 8
#define STEP_MOST (64 * MiB)

/* Not at every free where each is more than a step: so many together, if they are no larger than
 * this. Under a limit of memory what is huge and idle is wanted in other sizes. */
#define FREES_LEAST 4
#define FREES_LARGEST MiB

/* A program that frees little has its spans ended by the time of day. */
#define SPAN_MILLISECONDS 1000

#define STEP_SLABS 128
#define LARGE_STEP (8 * MiB)

/* How far what is kept may pass a cap: less than any huge block. */
#define BEYOND_CAP MiB

/* One kind of free memory. */
struct kind {
    enum journal_subject subject; /* constant */
    struct retention learned;
    size_t span; /* bytes freed meanwhile, after which it goes back */
    size_t next; /* the allocation clock when the span ends */
    size_t late; /* the time of day when it ends at the latest */
    size_t debt; /* found idle and not yet given back, in the kind's own unit */
};

/* Held while anything goes back, so that no fork is then. */
static struct lock upkeep_lock FORK_PAGE = LOCK(UPKEEP);
static struct kind pages = {.subject = JOURNAL_PAGES}, slices = {.subject = JOURNAL_SLICES},
                   huge = {.subject = JOURNAL_HUGE}; /* lock: upkeep */
static size_t last_tick; /* the allocation clock at the last; lock: upkeep */
size_t upkeep_due;

static COLD void journal_span(const struct kind *kind, size_t from, struct purge_counters since,
                              struct purge_counters now)
{
    size_t purged = now.purged - since.purged;
    size_t again = now.refaulted - since.refaulted;
    const struct journal_entry entry = {.subject = kind->subject,
                                        .taken_again =
                                            purged > 0 ? (unsigned)(again * 100 / purged) : 0,
                                        .from = from,
                                        .to = kind->learned.span,
                                        .clock = clock_now()};
    journal_add(&entry);
}

static struct purge_counters read_counters(struct purge_counters *now)
{
    return (struct purge_counters){load_relaxed(&now->purged), load_relaxed(&now->refaulted),
                                   load_relaxed(&now->taken)};
}

static void span_begin(struct kind *kind, struct purge_counters seen)
{
    ASSERT(lock_held(&upkeep_lock));
    struct retention before = kind->learned;
    if (policy.learn != LEARN_FROZEN)
        retention_step(&kind->learned, seen, policy.retain_least, policy.retain_most);
    if (journal_open() && before.span != 0 && kind->learned.span != before.span)
        journal_span(kind, before.span, before.since, seen);
    kind->span = policy.learn == LEARN ? kind->learned.span : policy.frozen_span;
    kind->next = clock_now() + kind->span;
    kind->late = os_milliseconds() + SPAN_MILLISECONDS;
}

static bool ended(const struct kind *kind)
{
    ASSERT(lock_held(&upkeep_lock));
    return !load_relaxed(&keeping.forever) &&
           ((ptrdiff_t)(clock_now() - kind->next) >= 0 || os_milliseconds() > kind->late);
}

static size_t larger(size_t a, size_t b) { return a > b ? a : b; }

static size_t smaller(size_t a, size_t b) { return a < b ? a : b; }

static size_t excess(size_t have, size_t most) { return have > most ? have - most : 0; }

/* What goes back now and is wanted again until the clock says that would have stayed had the span
 * grown. What comes back later would not, so it says nothing: a program whose sizes shift would
 * keep the pages of all its sizes (peak 1.5). */
static size_t soon(const struct kind *kind) { return clock_now() + kind->span * RETENTION_GROWTH; }

static void pages_span_ends(void)
{
    ASSERT(lock_held(&upkeep_lock));
    struct purge_counters seen = read_counters(&counters.pages);
    seen.taken = load_relaxed(&counters.freed); /* about as much, in the long run */
    span_begin(&pages, seen);
}

static void slices_span_ends(void)
{
    ASSERT(lock_held(&upkeep_lock));
    slices.debt = slices_idle();
    span_begin(&slices, read_counters(&counters.slices));
}

static void huge_span_ends(void)
{
    ASSERT(lock_held(&upkeep_lock));
    huge.debt = large_idle();
    span_begin(&huge, read_counters(&counters.huge));
}

/* A longer span is of no use where what it would keep is too much, so how much may be kept is
 * learned with it; where no scavenger gives it back once the program rests, only so much. */
#define LEARNED_MOST (4 * GiB)
#define LEARNED_ALONE (96 * MiB)

/* In bytes; 0 where nothing is learned. */
static size_t learned_most(const struct kind *kind)
{
    if (policy.learn != LEARN || load_relaxed(&keeping.forever))
        return 0;
    return smaller(kind->span, scavenger_runs() ? LEARNED_MOST : LEARNED_ALONE);
}

static size_t slices_most(void)
{
    size_t set = load_relaxed(&keeping.slices);
    return unless_auto(set, larger(RETAIN_SLICES_FIRST, learned_most(&slices) / SLICE));
}

static size_t huge_most(void)
{
    size_t set = load_relaxed(&keeping.huge);
    return unless_auto(set, larger(BIG_CACHE_FIRST, learned_most(&huge)));
}

/* Gives back up to `most` bytes of each kind, of what is owed or beyond the caps; whether there is
 * more to do. A cap may have fallen far, so it is reached by steps, too. */
static bool pay(size_t most)
{
    ASSERT(lock_held(&upkeep_lock));
    size_t beyond = excess(slices_retained(), slices_most());
    size_t part = smaller(larger(slices.debt, beyond), most / SLICE);
    bool more = part > 0 && slices_purge(part) > 0 && part < beyond;
    slices.debt = excess(slices.debt, part);

    beyond = excess(large_kept(), huge_most());
    part = smaller(larger(huge.debt, beyond), most);
    more |= part > 0 && large_purge(part) > 0 && part < beyond;
    huge.debt = excess(huge.debt, part);
    return more || slices.debt > 0 || huge.debt > 0;
}

/* Bytes that may be freed before a cap is passed. */
static size_t headroom(void)
{
    ASSERT(lock_held(&upkeep_lock));
    size_t slices_left = excess(slices_most(), slices_retained());
    size_t huge_left = excess(huge_most(), large_kept());
    return smaller(smaller(slices_left, STEP_MOST / SLICE) * SLICE, huge_left);
}

/* The shortest span of a kind of which there is any. */
static size_t shortest_span(void)
{
    ASSERT(lock_held(&upkeep_lock));
    if (load_relaxed(&keeping.forever))
        return SIZE_MAX;
    size_t span = policy.retain_most;
    if (shards_sparse())
        span = smaller(span, pages.span);
    if (slices_retained() > 0)
        span = smaller(span, slices.span);
    if (large_kept() > 0)
        span = smaller(span, huge.span);
    return larger(smaller(span, policy.retain_most), policy.retain_least);
}

COLD void upkeep(void)
{
    if (fork_holds_locks || !lock_try(&upkeep_lock))
        return;
    struct finding found = {MISUSE_NONE, NULL};
    size_t overdue = clock_now() - load_relaxed(&upkeep_due);
    if (ended(&pages)) {
        pages_span_ends();
        found = transfers_decay(false);
    }
    if (ended(&slices))
        slices_span_ends();
    if (ended(&huge)) {
        huge_span_ends();
        pocket_age(cache_current());
    }
    size_t slabs = STEP_SLABS;
    if (shards_sparse() && !load_relaxed(&keeping.forever))
        shards_purge(clock_now() - pages.span, soon(&pages), &slabs);
    superslab_make_huge();
    size_t step = larger(shortest_span() / STEPS, FREES_LEAST * smaller(overdue, FREES_LARGEST));
    step = smaller(step, STEP_MOST);
    pay(larger(larger(2 * step, LARGE_STEP), overdue));
    store_relaxed(&upkeep_due, clock_now() + smaller(step, larger(headroom(), BEYOND_CAP)));
    lock_release(&upkeep_lock);
    report_late(found, NULL);
    scavenger_wake();
}

void upkeep_anew(void)
{
    lock_take(&upkeep_lock);
    pages.learned.span = slices.learned.span = huge.learned.span = 0;
    pages_span_ends();
    slices_span_ends();
    huge_span_ends();
    slices.debt = huge.debt = 0;
    pay(SIZE_MAX);
    store_relaxed(&upkeep_due, clock_now());
    lock_release(&upkeep_lock);
}

bool upkeep_by_time(void)
{
    if (load_relaxed(&keeping.forever))
        return false;
    if (!lock_enter(&upkeep_lock))
        return true; /* a fork has everything, and may last; a thread's end may wait for this one */
    struct finding found = transfers_decay(false);
    struct theft theft = caches_steal(false);
    size_t before = last_tick;
    bool moved = last_tick != clock_now();
    last_tick = clock_now();
    /* While the program works its spans end by the allocation clock, and not more often. */
    if (!moved || ended(&pages))
        pages_span_ends();
    if (!moved || ended(&slices))
        slices_span_ends();
    if (!moved || ended(&huge))
        huge_span_ends();
    lock_release(&upkeep_lock);
    report_late(found, NULL);
    report_late(theft.found, NULL);

    /* In steps, so that a fork need not wait long. */
    size_t purged = 0;
    for (bool more = true; more;) {
        size_t slabs = STEP_SLABS;
        if (!lock_enter(&upkeep_lock))
            return true;
        purged += shards_purge(before, soon(&pages), &slabs);
        more = pay(LARGE_STEP) || slabs == 0;
        lock_release(&upkeep_lock);
    }
    return moved || purged > 0 || theft.busy > 0 || theft.bytes > 0 || slices_retained() > 0 ||
           large_kept() > 0;
}

void upkeep_alone(bool idle_too)
{
    if (idle_too)
        upkeep_by_time();
    for (bool more = true; more && lock_enter(&upkeep_lock);) {
        more = pay(LARGE_STEP);
        lock_release(&upkeep_lock);
    }
}

size_t upkeep_all(size_t pad)
{
    struct cache *mine = thread_cache();
    if (mine != NULL)
        report_late(cache_empty(mine), NULL);
    if (!lock_enter(&upkeep_lock))
        return 0; /* a fork has everything, and may last */
    struct theft theft = caches_steal(true);
    struct finding found = transfers_decay(true);
    size_t slabs = SIZE_MAX;
    size_t bytes = shards_purge(clock_now(), clock_now(), &slabs);
    bytes += pad < SLICE ? superslabs_release()
                         : slices_purge(excess(slices_retained(), pad / SLICE)) * SLICE;
    bytes += large_purge(SIZE_MAX);
    reserve_release();
    slices.debt = huge.debt = 0;
    lock_release(&upkeep_lock);
    report_late(theft.found, NULL);
    report_late(found, NULL);
    return bytes;
}

bool upkeep_check_frees(bool on)
{
    thread_cache(); /* the process's start */
    bool before = load_relaxed(&caches_closed);
    caches_close(on);
    /* What lies in a stack counts as taken: freed again, it would not be seen. */
    if (on && !before)
        upkeep_all(0);
    return before;
}

void upkeep_stop(void) { lock_take(&upkeep_lock); }
bool upkeep_try_stop(void) { return lock_try(&upkeep_lock); }
void upkeep_go_on(void) { lock_release(&upkeep_lock); }

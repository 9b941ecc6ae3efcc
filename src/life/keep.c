#include "life/keep.h"

#include "back/large.h"
#include "back/slices.h"
#include "back/slices_purge.h"
#include "base/atomic.h"
#include "base/counters.h"
#include "base/policy.h"
#include "heap/page_purge.h"
#include "os/lock.h"
#include "os/os.h"

/* A program that frees little has its spans ended by the time of day. */
#define SPAN_MILLISECONDS 1000

struct kind kept_pages = {.subject = JOURNAL_PAGES}, kept_slices = {.subject = JOURNAL_SLICES},
            kept_huge = {.subject = JOURNAL_HUGE};
bool upkeep_timed FORK_PAGE;

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
    ASSERT(lock_rank_held(RANK_UPKEEP));
    struct retention before = kind->learned;
    if (policy.learn != LEARN_FROZEN)
        retention_step(&kind->learned, seen, policy.retain_least, policy.retain_most);
    if (journal_open() && before.span != 0 && kind->learned.span != before.span)
        journal_span(kind, before.span, before.since, seen);
    kind->span = policy.learn == LEARN ? kind->learned.span : policy.frozen_span;
    kind->next = clock_now() + kind->span;
    kind->late = os_milliseconds() + SPAN_MILLISECONDS;
}

bool span_ended(const struct kind *kind)
{
    ASSERT(lock_rank_held(RANK_UPKEEP));
    return !load_relaxed(&keeping.forever) &&
           ((ptrdiff_t)(clock_now() - kind->next) >= 0 || os_milliseconds() > kind->late);
}

size_t too_soon_until(const struct kind *kind)
{
    return clock_now() + kind->span * RETENTION_GROWTH;
}

void pages_span_ends(void)
{
    ASSERT(lock_rank_held(RANK_UPKEEP));
    struct purge_counters seen = read_counters(&counters.pages);
    seen.taken = load_relaxed(&counters.freed); /* about as much, in the long run */
    span_begin(&kept_pages, seen);
}

void slices_span_ends(void)
{
    ASSERT(lock_rank_held(RANK_UPKEEP));
    kept_slices.debt = slices_idle();
    span_begin(&kept_slices, read_counters(&counters.slices));
}

void huge_span_ends(void)
{
    ASSERT(lock_rank_held(RANK_UPKEEP));
    kept_huge.debt = large_idle();
    span_begin(&kept_huge, read_counters(&counters.huge));
}

void spans_anew(void)
{
    kept_pages.learned.span = kept_slices.learned.span = kept_huge.learned.span = 0;
    pages_span_ends();
    slices_span_ends();
    huge_span_ends();
    kept_slices.debt = kept_huge.debt = 0;
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
    return smaller(kind->span, load_relaxed(&upkeep_timed) ? LEARNED_MOST : LEARNED_ALONE);
}

static size_t slices_most(void)
{
    size_t set = load_relaxed(&keeping.slices);
    return unless_auto(set, larger(RETAIN_SLICES_FIRST, learned_most(&kept_slices) / SLICE));
}

static size_t huge_most(void)
{
    size_t set = load_relaxed(&keeping.huge);
    return unless_auto(set, larger(BIG_CACHE_FIRST, learned_most(&kept_huge)));
}

bool give_back_owed(size_t most)
{
    ASSERT(lock_rank_held(RANK_UPKEEP));
    size_t beyond = excess(slices_retained(), slices_most());
    size_t part = smaller(larger(kept_slices.debt, beyond), most / SLICE);
    bool more = part > 0 && slices_purge(part) > 0 && part < beyond;
    kept_slices.debt = excess(kept_slices.debt, part);

    beyond = excess(large_kept(), huge_most());
    part = smaller(larger(kept_huge.debt, beyond), most);
    more |= part > 0 && large_purge(part) > 0 && part < beyond;
    kept_huge.debt = excess(kept_huge.debt, part);
    return more || kept_slices.debt > 0 || kept_huge.debt > 0;
}

size_t headroom(size_t most)
{
    ASSERT(lock_rank_held(RANK_UPKEEP));
    size_t slices_left = excess(slices_most(), slices_retained());
    size_t huge_left = excess(huge_most(), large_kept());
    return smaller(smaller(slices_left, most / SLICE) * SLICE, huge_left);
}

size_t shortest_span(void)
{
    ASSERT(lock_rank_held(RANK_UPKEEP));
    if (load_relaxed(&keeping.forever))
        return SIZE_MAX;
    size_t span = policy.retain_most;
    if (shards_sparse())
        span = smaller(span, kept_pages.span);
    if (slices_retained() > 0)
        span = smaller(span, kept_slices.span);
    if (large_kept() > 0)
        span = smaller(span, kept_huge.span);
    return larger(smaller(span, policy.retain_most), policy.retain_least);
}

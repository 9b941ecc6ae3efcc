#include "life/epochs.h"

#include "back/large.h"
#include "back/slices.h"
#include "back/slices_purge.h"
#include "base/atomic.h"
#include "base/counters.h"
#include "base/policy.h"
#include "heap/page_purge.h"
#include "os/lock.h"
#include "os/os.h"

/* A program that frees little has its epochs ended by the time of day. */
#define EPOCH_MILLISECONDS 1000

struct kind dirty_pages = {.subject = JOURNAL_PAGES}, dirty_slices = {.subject = JOURNAL_SLICES},
            dirty_huge = {.subject = JOURNAL_HUGE};
bool purge_timed FORK_PAGE;

static COLD void journal_epoch(const struct kind *kind, size_t from, struct purge_counters since,
                               struct purge_counters now)
{
    size_t purged = now.purged - since.purged;
    size_t again = now.refaulted - since.refaulted;
    const struct journal_entry entry = {.subject = kind->subject,
                                        .taken_again =
                                            purged > 0 ? (unsigned)(again * 100 / purged) : 0,
                                        .from = from,
                                        .to = kind->learned.epoch,
                                        .clock = clock_now()};
    journal_add(&entry);
}

static struct purge_counters read_counters(struct purge_counters *now)
{
    return (struct purge_counters){load_relaxed(&now->purged), load_relaxed(&now->refaulted),
                                   load_relaxed(&now->taken)};
}

static void epoch_begin(struct kind *kind, struct purge_counters seen)
{
    ASSERT(lock_rank_held(RANK_PURGE));
    struct retention before = kind->learned;
    if (policy.learn != LEARN_FROZEN)
        retention_step(&kind->learned, seen, policy.retain_least, policy.retain_most);
    if (journal_open() && before.epoch != 0 && kind->learned.epoch != before.epoch)
        journal_epoch(kind, before.epoch, before.since, seen);
    kind->epoch = policy.learn == LEARN ? kind->learned.epoch : policy.frozen_epoch;
    kind->next = clock_now() + kind->epoch;
    kind->late = os_milliseconds() + EPOCH_MILLISECONDS;
}

bool epoch_ended(const struct kind *kind)
{
    ASSERT(lock_rank_held(RANK_PURGE));
    return !load_relaxed(&keeping.forever) &&
           ((ptrdiff_t)(clock_now() - kind->next) >= 0 || os_milliseconds() > kind->late);
}

size_t too_soon_until(const struct kind *kind)
{
    return clock_now() + kind->epoch * RETENTION_GROWTH;
}

void pages_epoch_ends(void)
{
    ASSERT(lock_rank_held(RANK_PURGE));
    struct purge_counters seen = read_counters(&counters.pages);
    seen.taken = load_relaxed(&counters.freed); /* about as much, in the long run */
    epoch_begin(&dirty_pages, seen);
}

void slices_epoch_ends(void)
{
    ASSERT(lock_rank_held(RANK_PURGE));
    dirty_slices.debt = slices_idle();
    epoch_begin(&dirty_slices, read_counters(&counters.slices));
}

void huge_epoch_ends(void)
{
    ASSERT(lock_rank_held(RANK_PURGE));
    dirty_huge.debt = large_idle();
    epoch_begin(&dirty_huge, read_counters(&counters.huge));
}

void epochs_anew(void)
{
    dirty_pages.learned.epoch = dirty_slices.learned.epoch = dirty_huge.learned.epoch = 0;
    pages_epoch_ends();
    slices_epoch_ends();
    huge_epoch_ends();
    dirty_slices.debt = dirty_huge.debt = 0;
}

/* A longer epoch is of no use where what it would keep is too much, so how much may be kept is
 * learned with it; where no scavenger gives it back once the program rests, only so much. */
#define LEARNED_MOST (4 * GiB)
#define LEARNED_ALONE (96 * MiB)

/* In bytes; 0 where nothing is learned. */
static size_t learned_most(const struct kind *kind)
{
    if (policy.learn != LEARN || load_relaxed(&keeping.forever))
        return 0;
    return smaller(kind->epoch, load_relaxed(&purge_timed) ? LEARNED_MOST : LEARNED_ALONE);
}

static size_t slices_most(void)
{
    size_t set = load_relaxed(&keeping.slices);
    return unless_auto(set, larger(RETAIN_SLICES_FIRST, learned_most(&dirty_slices) / SLICE));
}

static size_t huge_most(void)
{
    size_t set = load_relaxed(&keeping.huge);
    return unless_auto(set, larger(BIG_CACHE_FIRST, learned_most(&dirty_huge)));
}

bool give_back_owed(size_t most)
{
    ASSERT(lock_rank_held(RANK_PURGE));
    size_t beyond = excess(slices_dirty(), slices_most());
    size_t part = smaller(larger(dirty_slices.debt, beyond), most / SLICE);
    bool more = part > 0 && slices_purge(part) > 0 && part < beyond;
    dirty_slices.debt = excess(dirty_slices.debt, part);

    beyond = excess(large_dirty(), huge_most());
    part = smaller(larger(dirty_huge.debt, beyond), most);
    more |= part > 0 && large_purge(part) > 0 && part < beyond;
    dirty_huge.debt = excess(dirty_huge.debt, part);
    return more || dirty_slices.debt > 0 || dirty_huge.debt > 0;
}

size_t headroom(size_t most)
{
    ASSERT(lock_rank_held(RANK_PURGE));
    size_t slices_left = excess(slices_most(), slices_dirty());
    size_t huge_left = excess(huge_most(), large_dirty());
    return smaller(smaller(slices_left, most / SLICE) * SLICE, huge_left);
}

size_t shortest_epoch(void)
{
    ASSERT(lock_rank_held(RANK_PURGE));
    if (load_relaxed(&keeping.forever))
        return SIZE_MAX;
    size_t epoch = policy.retain_most;
    if (shards_sparse())
        epoch = smaller(epoch, dirty_pages.epoch);
    if (slices_dirty() > 0)
        epoch = smaller(epoch, dirty_slices.epoch);
    if (large_dirty() > 0)
        epoch = smaller(epoch, dirty_huge.epoch);
    return larger(smaller(epoch, policy.retain_most), policy.retain_least);
}

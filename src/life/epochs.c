#include "life/epochs.h"

#include "back/huge.h"
#include "back/slices.h"
#include "back/slices_purge.h"
#include "back/use.h"
#include "base/atomic.h"
#include "base/counters.h"
#include "base/policy.h"
#include "heap/page_purge.h"
#include "learn/keep.h"
#include "os/lock.h"
#include "os/os.h"

struct kind dirty_pages = {.subject = JOURNAL_PAGES}, dirty_slices = {.subject = JOURNAL_SLICES},
            dirty_huge = {.subject = JOURNAL_HUGE};

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
    kind->ripe = kind->began;
    kind->began = clock_now();
    kind->late = os_milliseconds() + LAW_REST_MS; /* of a program that frees little */
}

bool epoch_ended(const struct kind *kind)
{
    ASSERT(lock_rank_held(RANK_PURGE));
    return !load_relaxed(&keeping.forever) &&
           ((ptrdiff_t)(clock_now() - kind->began - kind->epoch) >= 0 ||
            os_milliseconds() > kind->late);
}

size_t too_soon_until(const struct kind *kind) { return clock_now() + retention_soon(kind->epoch); }

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
    dirty_huge.debt = huge_idle();
    epoch_begin(&dirty_huge, read_counters(&counters.huge));
}

void note_what_is_dirty(void)
{
    store_relaxed(&dirty_slices.seen, slices_dirty());
    store_relaxed(&dirty_huge.seen, huge_dirty());
}

void owe_what_was_dirty(void)
{
    ASSERT(lock_rank_held(RANK_PURGE));
    dirty_slices.debt =
        larger(dirty_slices.debt, smaller(load_relaxed(&dirty_slices.seen), slices_dirty()));
    dirty_huge.debt =
        larger(dirty_huge.debt, smaller(load_relaxed(&dirty_huge.seen), huge_dirty()));
}

/* What went back so that no more is kept than use.h says, since the program last freed as many
 * bytes as were ever in use; lock: purge. */
static struct beyond {
    size_t began;  /* the allocation clock */
    size_t moment; /* the time of day then */
    size_t bytes;
    size_t refaulted; /* the counters' at that time */
    size_t worth;     /* bytes more that were worth keeping, in all */
    size_t lacking;   /* of what went back, what was not taken again yet */
    size_t lacked;    /* the most of that at once */
    size_t seen;      /* the counters' when it was last looked at */
    bool needed;      /* as the last look found */
} beyond;

static size_t refaulted_now(void)
{
    return load_relaxed(&counters.slices.refaulted) + load_relaxed(&counters.huge.refaulted);
}

void epochs_anew(void)
{
    dirty_pages.learned.epoch = dirty_slices.learned.epoch = dirty_huge.learned.epoch = 0;
    size_t refaulted = refaulted_now();
    beyond = (struct beyond){.began = clock_now(),
                             .moment = os_milliseconds(),
                             .refaulted = refaulted,
                             .seen = refaulted};
    store_relaxed(&use.learned, 0);
    pages_epoch_ends();
    slices_epoch_ends();
    huge_epoch_ends();
    dirty_slices.debt = dirty_huge.debt = 0;
}

/* Dirty slices or bytes of huge blocks beyond what may be kept: a number that was set is never
 * exceeded, and all of it together obeys use.h. There the larger kind goes first. */
static void count_beyond(size_t *slices, size_t *huge)
{
    *slices = excess(slices_dirty(), load_relaxed(&keeping.slices));
    *huge = excess(huge_dirty(), load_relaxed(&keeping.huge));
    size_t both = use_excess();
    if (huge_dirty() >= slices_dirty() * SLICE)
        *huge = larger(*huge, smaller(both, huge_dirty()));
    else
        *slices = larger(*slices, smaller((both + SLICE - 1) / SLICE, slices_dirty()));
}

bool keeps_too_much(void)
{
    size_t slices;
    size_t huge;
    count_beyond(&slices, &huge);
    return slices > 0 || huge > 0;
}

static size_t give_back(size_t slices, size_t huge)
{
    size_t done = slices > 0 ? slices_purge(slices) * SLICE : 0;
    done += huge > 0 ? huge_purge(huge) : 0;
    dirty_slices.debt = excess(dirty_slices.debt, slices);
    dirty_huge.debt = excess(dirty_huge.debt, huge);
    return done;
}

/* If it was wanted again, so much more would have saved it: if that was so twice, it is again. */
static COLD void learn_beside(size_t most, size_t refaulted)
{
    ASSERT(lock_rank_held(RANK_PURGE));
    size_t again = smaller(refaulted - beyond.refaulted, beyond.bytes);
    size_t passed = os_milliseconds() - beyond.moment;
    bool needed_before = beyond.needed;
    beyond.needed = keep_was_needed(beyond.bytes, again, passed, beyond.lacked, most);
    if (!beyond.needed || !needed_before)
        return;
    const struct journal_entry entry = {.subject = JOURNAL_BESIDE,
                                        .taken_again = (unsigned)(again * 100 / beyond.bytes),
                                        .from = beyond.worth,
                                        .to = keep_learned(beyond.worth, beyond.bytes, most),
                                        .clock = clock_now()};
    if (journal_open() && entry.to / MiB != entry.from / MiB)
        journal_add(&entry);
    beyond.worth = entry.to;
    if (policy.learn == LEARN)
        store_relaxed(&use.learned, beyond.worth);
}

static void beyond_look(void)
{
    size_t most = load_relaxed(&use.most);
    if (clock_now() - beyond.began < most)
        return;
    size_t refaulted = refaulted_now();
    if (policy.learn != LEARN_FROZEN)
        learn_beside(most, refaulted);
    beyond.began = clock_now();
    beyond.moment = os_milliseconds();
    /* What went back before that is no longer wanted. */
    beyond.lacking = smaller(excess(beyond.lacking, refaulted - beyond.seen), beyond.bytes);
    beyond.lacked = beyond.lacking;
    beyond.seen = beyond.refaulted = refaulted;
    beyond.bytes = 0;
}

static void beyond_count(size_t done)
{
    size_t refaulted = refaulted_now();
    beyond.bytes += done;
    beyond.lacking = excess(beyond.lacking, refaulted - beyond.seen) + done;
    beyond.lacked = larger(beyond.lacked, beyond.lacking);
    beyond.seen = refaulted;
}

size_t give_back_beyond(size_t most)
{
    ASSERT(lock_rank_held(RANK_PURGE));
    size_t slices;
    size_t huge;
    beyond_look();
    count_beyond(&slices, &huge);
    slices = smaller(slices, most / SLICE);
    size_t done = give_back(slices, smaller(huge, excess(most, slices * SLICE)));
    if (load_relaxed(&keeping.slices) == AUTO && load_relaxed(&keeping.huge) == AUTO)
        beyond_count(done);
    return done;
}

size_t give_back_owed(size_t most)
{
    ASSERT(lock_rank_held(RANK_PURGE));
    if (load_relaxed(&keeping.forever))
        return 0;
    size_t slices = smaller(dirty_slices.debt, most / SLICE);
    return give_back(slices, smaller(dirty_huge.debt, most - slices * SLICE));
}

bool owes(void) { return dirty_slices.debt > 0 || dirty_huge.debt > 0; }

size_t headroom(size_t most)
{
    size_t slices_left = excess(load_relaxed(&keeping.slices), slices_dirty());
    size_t huge_left = excess(load_relaxed(&keeping.huge), huge_dirty());
    return smaller(smaller(slices_left, most / SLICE) * SLICE, huge_left);
}

size_t shortest_epoch(void)
{
    ASSERT(lock_rank_held(RANK_PURGE));
    if (load_relaxed(&keeping.forever))
        return SIZE_MAX;
    size_t epoch = SIZE_MAX;
    if (shards_sparse())
        epoch = smaller(epoch, dirty_pages.epoch);
    if (slices_dirty() > 0)
        epoch = smaller(epoch, dirty_slices.epoch);
    if (huge_dirty() > 0)
        epoch = smaller(epoch, dirty_huge.epoch);
    if (epoch == SIZE_MAX)
        return LAW_LOOK_MOST; /* until there may be some */
    return larger(epoch, policy.retain_least);
}

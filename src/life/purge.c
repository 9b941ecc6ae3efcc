#include "life/purge.h"

#include "back/huge.h"
#include "back/reserve.h"
#include "back/slices.h"
#include "back/slices_purge.h"
#include "base/policy.h"
#include "front/closer.h"
#include "front/large.h"
#include "front/owners.h"
#include "front/theft.h"
#include "heap/page_purge.h"
#include "heap/transfer.h"
#include "learn/laws.h"
#include "learn/looks.h"
#include "life/epochs.h"
#include "life/limits.h"
#include "life/pace.h"
#include "os/lock.h"
#include "os/os.h"
#include "watch/report.h"

/* What one call gives back beyond its own block, so that no caller waits for long: up to two slices
 * more come from rounding. The scavenger gives back as much before it lets others have the lock. */
#define CALL_MOST (LAW_CALL_MOST - 2 * SLICE)

/* Held while anything goes back, so that no fork is then. */
static struct lock purge_lock FORK_PAGE = LOCK(PURGE);
static size_t last_tick; /* the allocation clock at the last; lock: purge */

static struct work work_done(void)
{
    const struct cache *mine = cache_current();
    return (struct work){mine->refills + mine->flushes - mine->thin_visits,
                         clock_now() - mine->thin_bytes};
}

static struct finding epochs_look(void)
{
    struct finding found = {MISUSE_NONE, NULL};
    bool rested = pace_rests(work_done());
    if (epoch_ended(&dirty_pages)) {
        pages_epoch_ends();
        found = transfers_decay(false);
    }
    if (epoch_ended(&dirty_slices)) {
        struct finding one = large_age(cache_current());
        found = found.what != MISUSE_NONE ? found : one;
        slices_epoch_ends();
    }
    if (epoch_ended(&dirty_huge))
        huge_epoch_ends();
    if (rested && !load_relaxed(&keeping.forever))
        owe_what_was_dirty();
    return found;
}

/* The time that giving back takes, for the statistics; where there may be something to give. */
static size_t giving_begins(void)
{
    return owes() || shards_sparse() || use_excess() > 0 ? os_nanoseconds() : 0;
}

static void giving_ends(size_t began)
{
    size_t now = began != 0 ? os_nanoseconds() : 0;
    if (now > began)
        add_relaxed(&counters.returning_ns, now - began);
}

/* There is more to give back, and the pace allows it, or it waits until the pace does; atomic. */
static bool goes_on, waits;

COLD bool purge_waits_long(void) { return load_relaxed(&waits) && pace_rests(work_done()); }
COLD bool purge_rest_looks(void) { return pace_rests(work_done()) && pace_moves(work_done()); }
bool purge_goes_on(void) { return load_relaxed(&goes_on); }

/* The allocation clock before which slabs became sparse whose pages go back. An epoch that ended by
 * the time of day is one, too. */
static size_t pages_ripe(void)
{
    size_t by_bytes = clock_now() - dirty_pages.epoch;
    return (ptrdiff_t)(by_bytes - dirty_pages.ripe) > 0 ? by_bytes : dirty_pages.ripe;
}

/* Gives back what is owed, as far as one call may and the pace allows; returns whether some is
 * left.
 */
static bool give_back_at_pace(size_t most)
{
    size_t allowed = smaller(most, pace_allows(work_done()));
    size_t spent = give_back_owed(allowed);
    bool more = owes() && (spent > 0 || allowed < SLICE);
    if (shards_sparse() && !load_relaxed(&keeping.forever)) {
        struct purge_room room = {LAW_STEP_SLABS, excess(allowed, spent), 0};
        shards_purge(pages_ripe(), too_soon_until(&dirty_pages), &room);
        spent =
            allowed - room.bytes + room.calls * os_page; /* a call costs about what a page does */
        more |= room.bytes == 0 || room.slabs == 0;
    }
    pace_spend(spent);
    store_relaxed(&waits, more && spent < most);
    return more;
}

/* Sets when the next look is due: after `step` bytes, but before a number that was set is passed.
 */
static void look_after(size_t step, size_t own)
{
    size_t bytes = look_distance(step, own > 0, headroom(LAW_LOOK_MOST));
    store_relaxed(&purge_due, clock_now() + bytes);
}

/* Without time nothing moves where something waits for it, or where huge blocks come and go: their
 * bytes end epochs faster than pages could go back. A fork or another thread may have the lock. */
static bool may_step(size_t own)
{
    bool later = load_relaxed(&waits);
    bool idle = own > 0 && !load_relaxed(&goes_on);
    if ((later || idle) && !pace_moves(work_done()) && !keeps_too_much() && !limits_due()) {
        note_what_is_dirty();
        if (!later)
            look_after(0, own);
        return false;
    }
    return !fork_holds_locks() && lock_try(&purge_lock);
}

COLD bool purge_step(size_t own)
{
    if (!may_step(own))
        return false;
    struct finding found = epochs_look();
    if (limits_due())
        limits_look();
    size_t most = CALL_MOST + own;
    size_t began = giving_begins();
    if (use_excess() > 0)
        large_empty(cache_current());
    size_t done = give_back_beyond(most);
    bool beyond = done >= most; /* which doesn't wait for the pace */
    bool more = beyond || give_back_at_pace(most - done);
    giving_ends(began);
    if (more)
        store_relaxed(&purge_due, clock_now());
    else
        look_after(look_step(shortest_epoch()), own);
    store_relaxed(&goes_on, beyond || (more && !load_relaxed(&waits)));
    note_what_is_dirty();
    use_set_look();
    lock_release(&purge_lock);
    report_late(found, NULL);
    return true;
}

void purge_ripen(void)
{
    if (load_relaxed(&keeping.forever) || !lock_try(&purge_lock))
        return;
    dirty_pages.ripe = clock_now();
    dirty_slices.debt = slices_dirty();
    store_relaxed(&purge_due, clock_now());
    lock_release(&purge_lock);
}

void purge_anew(void)
{
    lock_take(&purge_lock);
    epochs_anew();
    give_back_beyond(SIZE_MAX);
    store_relaxed(&purge_due, clock_now());
    lock_release(&purge_lock);
}

void purge_beyond(void)
{
    lock_take(&purge_lock);
    give_back_beyond(SIZE_MAX);
    lock_release(&purge_lock);
}

static bool beyond_limits(void)
{
    return load_relaxed(&limits.keep) != SIZE_MAX && use_excess() > 0;
}

/* Who finds the lock taken leaves this to its holder: the scavenger and a thread that ends look
 * again after they have released it, others in their next call. */
void purge_beyond_limits(void)
{
    size_t done = 1;
    while (done > 0 && (limits_due() || beyond_limits()) && !fork_holds_locks() &&
           lock_try(&purge_lock)) {
        if (limits_due())
            limits_look();
        done = beyond_limits() ? give_back_beyond(SIZE_MAX) : 0;
        use_set_look();
        lock_release(&purge_lock);
    }
}

bool purge_by_time(void)
{
    if (load_relaxed(&keeping.forever))
        return false;
    if (!lock_enter(&purge_lock))
        return true; /* a fork has everything, and may last; a thread's end may wait for this one */
    if (limits_due())
        limits_look();
    struct finding found = transfers_decay(false);
    struct theft theft = caches_steal(false);
    size_t before = last_tick;
    bool moved = last_tick != clock_now();
    last_tick = clock_now();
    /* While the program works its epochs end by the allocation clock, and not more often. */
    if (!moved || epoch_ended(&dirty_pages))
        pages_epoch_ends();
    if (!moved || epoch_ended(&dirty_slices))
        slices_epoch_ends();
    if (!moved || epoch_ended(&dirty_huge))
        huge_epoch_ends();
    lock_release(&purge_lock);
    report_late(found, NULL);
    report_late(theft.found, NULL);

    /* In steps, so that a fork need not wait long. */
    size_t purged = 0;
    for (bool more = true; more;) {
        struct purge_room room = {LAW_STEP_SLABS, SIZE_MAX, 0};
        if (!lock_enter(&purge_lock))
            return true;
        size_t began = giving_begins();
        purged += shards_purge(before, too_soon_until(&dirty_pages), &room);
        more = (give_back_owed(CALL_MOST) > 0 && owes()) || room.slabs == 0;
        more |= give_back_beyond(CALL_MOST) > 0;
        giving_ends(began);
        use_set_look();
        lock_release(&purge_lock);
    }
    purge_beyond_limits();
    return moved || purged > 0 || theft.busy > 0 || theft.bytes > 0 || slices_dirty() > 0 ||
           huge_dirty() > 0;
}

size_t purge_all(struct cache *mine, size_t pad)
{
    if (mine != NULL)
        report_late(cache_empty(mine), NULL);
    if (!lock_enter(&purge_lock))
        return 0; /* a fork has everything, and may last */
    struct theft theft = caches_steal(true);
    struct finding found = transfers_decay(true);
    struct purge_room room = {SIZE_MAX, SIZE_MAX, 0};
    size_t began = os_nanoseconds();
    shards_sparse_anew();
    size_t bytes = shards_purge(clock_now(), clock_now(), &room);
    bytes += pad < SLICE ? superslabs_release()
                         : slices_purge(excess(slices_dirty(), pad / SLICE)) * SLICE;
    bytes += huge_purge(SIZE_MAX);
    reserve_release();
    giving_ends(began);
    dirty_slices.debt = dirty_huge.debt = 0;
    use_set_look();
    lock_release(&purge_lock);
    report_late(theft.found, NULL);
    report_late(found, NULL);
    return bytes;
}

bool purge_check_frees(struct cache *mine, bool on)
{
    bool before = load_relaxed(&caches_closed);
    caches_close(on);
    /* What lies in a stack counts as taken: freed again, it would not be seen. */
    if (on && !before)
        purge_all(mine, 0);
    return before;
}

void purge_stop(void) { lock_take(&purge_lock); }
bool purge_try_stop(void) { return lock_try(&purge_lock); }
void purge_go_on(void) { lock_release(&purge_lock); }

#include "life/purge.h"

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
#include "life/epochs.h"
#include "os/lock.h"
#include "os/os.h"
#include "watch/report.h"

/* The slow path looks in so many times in an epoch, and pays back as much as was freed meanwhile at
 * most twice over: by small steps, and without end where a program only frees. */
#define STEPS 8
#define STEP_MOST (64 * MiB)

/* Not at every free where each is more than a step: so many together, if they are no larger than
 * this. Under a limit of memory what is huge and idle is wanted in other sizes. */
#define FREES_LEAST 4
#define FREES_LARGEST MiB

#define STEP_SLABS 128
#define LARGE_STEP (8 * MiB)

/* How far what is kept may pass a cap: less than any huge block. */
#define BEYOND_CAP MiB

/* Held while anything goes back, so that no fork is then. */
static struct lock purge_lock FORK_PAGE = LOCK(PURGE);
static size_t last_tick; /* the allocation clock at the last; lock: purge */
size_t purge_due;

COLD bool purge_step(void)
{
    if (fork_holds_locks || !lock_try(&purge_lock))
        return false;
    struct finding found = {MISUSE_NONE, NULL};
    size_t overdue = clock_now() - load_relaxed(&purge_due);
    if (epoch_ended(&dirty_pages)) {
        pages_epoch_ends();
        found = transfers_decay(false);
    }
    if (epoch_ended(&dirty_slices))
        slices_epoch_ends();
    if (epoch_ended(&dirty_huge)) {
        huge_epoch_ends();
        pocket_age(cache_current());
    }
    size_t slabs = STEP_SLABS;
    if (shards_sparse() && !load_relaxed(&keeping.forever))
        shards_purge(clock_now() - dirty_pages.epoch, too_soon_until(&dirty_pages), &slabs);
    superslab_make_huge();
    size_t step = larger(shortest_epoch() / STEPS, FREES_LEAST * smaller(overdue, FREES_LARGEST));
    step = smaller(step, STEP_MOST);
    give_back_owed(larger(larger(2 * step, LARGE_STEP), overdue));
    store_relaxed(&purge_due, clock_now() + smaller(step, larger(headroom(STEP_MOST), BEYOND_CAP)));
    lock_release(&purge_lock);
    report_late(found, NULL);
    return true;
}

void purge_anew(void)
{
    lock_take(&purge_lock);
    epochs_anew();
    give_back_owed(SIZE_MAX);
    store_relaxed(&purge_due, clock_now());
    lock_release(&purge_lock);
}

bool purge_by_time(void)
{
    if (load_relaxed(&keeping.forever))
        return false;
    if (!lock_enter(&purge_lock))
        return true; /* a fork has everything, and may last; a thread's end may wait for this one */
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
        size_t slabs = STEP_SLABS;
        if (!lock_enter(&purge_lock))
            return true;
        purged += shards_purge(before, too_soon_until(&dirty_pages), &slabs);
        more = give_back_owed(LARGE_STEP) || slabs == 0;
        lock_release(&purge_lock);
    }
    return moved || purged > 0 || theft.busy > 0 || theft.bytes > 0 || slices_dirty() > 0 ||
           large_dirty() > 0;
}

void purge_alone(bool idle_too)
{
    if (idle_too)
        purge_by_time();
    for (bool more = true; more && lock_enter(&purge_lock);) {
        more = give_back_owed(LARGE_STEP);
        lock_release(&purge_lock);
    }
}

size_t purge_all(struct cache *mine, size_t pad)
{
    if (mine != NULL)
        report_late(cache_empty(mine), NULL);
    if (!lock_enter(&purge_lock))
        return 0; /* a fork has everything, and may last */
    struct theft theft = caches_steal(true);
    struct finding found = transfers_decay(true);
    size_t slabs = SIZE_MAX;
    size_t bytes = shards_purge(clock_now(), clock_now(), &slabs);
    bytes += pad < SLICE ? superslabs_release()
                         : slices_purge(excess(slices_dirty(), pad / SLICE)) * SLICE;
    bytes += large_purge(SIZE_MAX);
    reserve_release();
    dirty_slices.debt = dirty_huge.debt = 0;
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

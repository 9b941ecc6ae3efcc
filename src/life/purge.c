#include "life/purge.h"

#include "back/huge.h"
#include "back/reserve.h"
#include "back/slices.h"
#include "base/policy.h"
#include "front/cache.h"
#include "front/large.h"
#include "front/owners.h"
#include "heap/shards.h"
#include "heap/transfer.h"
#include "learn/laws.h"
#include "learn/returns.h"
#include "life/limits.h"
#include "os/lock.h"
#include "os/os.h"
#include "report/report.h"

/* What one call gives back beyond its own block, so that no caller waits for long: up to two slices
 * more come from rounding. The scavenger gives back as much before it lets others have the lock. */
#define CALL_MOST (LAW_CALL_MOST - 2 * SLICE)

/* Held while anything goes back, so that no fork is then. */
static struct lock purge_lock FORK_PAGE = LOCK(PURGE);

bool purge_goes_on;

/* Found idle, and not given back yet; lock: purge. */
static struct {
    size_t slices, huge; /* numbers of slices; bytes */
    bool pages;          /* of slabs that were sparse before the allocation clock said `before` */
    size_t before;
} owed;

/* ---- what went back in vain; lock: purge ---- */

static struct {
    size_t again;  /* bytes wanted again that were counted, as the counters have them */
    size_t moment; /* when it was counted last, in milliseconds */
    size_t worked; /* the processor time then, if there was anything to count */
} vain;

static size_t wanted_again(void)
{
    return load_relaxed(&counters.pages.refaulted) + load_relaxed(&counters.slices.refaulted) +
           load_relaxed(&counters.huge.refaulted);
}

/* Milliseconds of processor time since the last call. In the child of a fork it begins anew. */
static size_t worked_since(void)
{
    size_t now = os_worked_milliseconds();
    size_t worked = excess(now, vain.worked);
    vain.worked = now;
    return worked;
}

static void count_vain(void)
{
    ASSERT(lock_rank_held(RANK_PURGE));
    size_t moment = os_milliseconds();
    size_t passed = moment - vain.moment;
    size_t again = wanted_again() - vain.again;
    size_t unpaid = load_relaxed(&use.vain);
    size_t worked = passed > 0 && unpaid + again > 0 ? worked_since() : 0;
    size_t left = returns_paid(unpaid, worked, excess(passed, worked));
    store_relaxed(&use.vain, returns_debt(left + again, load_relaxed(&use.most)));
    vain.moment = moment;
    vain.again += again;
}

static void take_stock(void)
{
    count_vain();
    store_relaxed(&use.spare, shards_free().bytes);
}

/* ---- what lies idle; lock: purge ---- */

static void owe(size_t slices, size_t huge)
{
    if (load_relaxed(&policy.keep_bytes) != AUTO)
        return; /* as much as that stays */
    owed.slices = larger(owed.slices, slices);
    owed.huge = larger(owed.huge, huge);
}

static struct {
    size_t moment; /* since when, in milliseconds */
    size_t clock;  /* the same by the allocation clock */
    size_t left;   /* the least that was free in slabs since memory last went back at once */
} hold;            /* lock: purge */

static void owe_pages(size_t before)
{
    owed.pages = shards_sparse();
    owed.before = larger(owed.before, before);
}

/* Those of all slabs. Blocks freed before earlier looks may have left some. */
static void give_up_pages(void)
{
    shards_sparse_anew();
    owe_pages(clock_now());
}

static size_t free_in_slabs(void)
{
    struct slabs_free free = shards_free();
    return free.bytes - free.absent;
}

/* Whether much is idle: of slabs' free memory what is beyond that which was left when memory last
 * went back, and twice that, as the last block of a page frees all of it. What the program has now
 * may be all that it will need, and it may make no call any more: so all of it is to go back. */
static bool find_much(void)
{
    size_t in_slabs = free_in_slabs();
    hold.left = smaller(hold.left, in_slabs);
    size_t beside =
        excess(use_dirty() + load_relaxed(&use.stacked), owed.slices * SLICE + owed.huge);
    size_t idle = beside + 2 * (in_slabs - hold.left);
    return idle >= returns_from(use_live()) && use_returns();
}

/* After the own stacks of large blocks were emptied. Also pages of slabs; not each as it becomes
 * free: most of these slabs are soon empty, and go back with one call. */
static void owe_all(void)
{
    owe(slices_dirty(), huge_dirty());
    hold.left = free_in_slabs();
    give_up_pages();
}

/* The heap has grown: what lies in stacks goes to their slabs, to serve before more fresh memory
 * does, and what is dirty to the kernel; and so do free pages of slabs, if they may be many. */
static struct finding grow_older(void)
{
    struct finding found = {MISUSE_NONE, NULL};
    if (limits.shrinks || !use_grown())
        return found;
    use_shrinks(true);
    found = stacks_age(cache_current());
    if (free_in_slabs() >= load_relaxed(&use.held) / LAW_SMALL_PART && use_returns())
        give_up_pages();
    return found;
}

static void end_shrinking(void)
{
    if (limits.shrinks)
        use_shrinks(false);
}

/* What nobody needed for a while. */
static struct finding find_old(void)
{
    struct finding found = transfers_decay(false);
    finding_keep(&found, stacks_age(cache_current()));
    owe(slices_idle(), huge_idle());
    owe_pages(hold.clock);
    hold.moment = vain.moment;
    hold.clock = clock_now();
    return found;
}

/* ---- giving back; lock: purge ---- */

/* At most `most` bytes. Returns how many. */
static size_t give(size_t slices, size_t huge, size_t most)
{
    slices = smaller(slices, most / SLICE);
    huge = smaller(huge, most - slices * SLICE);
    size_t done = slices > 0 ? slices_purge(slices) * SLICE : 0;
    done += huge > 0 ? huge_purge(huge) : 0;
    owed.slices = smaller(excess(owed.slices, slices), slices_dirty());
    owed.huge = smaller(excess(owed.huge, huge), huge_dirty());
    return done;
}

/* What is beyond what may be kept (use.h), of the larger kind. */
static size_t give_beyond(size_t most)
{
    size_t beyond = use_excess();
    if (beyond == 0)
        return 0;
    if (huge_dirty() >= slices_dirty() * SLICE)
        return give(0, smaller(beyond, huge_dirty()), most);
    return give(smaller((beyond + SLICE - 1) / SLICE, slices_dirty()), 0, most);
}

static void give_pages(size_t most)
{
    struct purge_room room = {STEP_SLABS, most};
    shards_purge(owed.before, &room);
    owed.pages = room.slabs == 0 || room.bytes == 0;
}

/* Whole runs first. Returns whether there is more, unless the kernel takes none. */
static bool give_owed(size_t most)
{
    size_t done = 0;
    if (load_relaxed(&limits.stays))
        return false;
    if (owed.slices > 0 || owed.huge > 0)
        done = give(owed.slices, owed.huge, most);
    bool more = (owed.slices > 0 || owed.huge > 0) && done > 0;
    if (owed.pages && done < most)
        give_pages(most - done);
    return more || owed.pages;
}

/* The time that giving back takes, for the statistics; where there may be something to give. */
static size_t giving_begins(void)
{
    bool some = owed.slices > 0 || owed.huge > 0 || owed.pages || use_excess() > 0;
    return some ? os_nanoseconds() : 0;
}

static void giving_ends(size_t began)
{
    size_t now = began != 0 ? os_nanoseconds() : 0;
    if (now > began)
        add_relaxed(&counters.returning_ns, now - began);
}

/* ---- who does it ---- */

static bool begin(void) { return !fork_holds_locks() && lock_try(&purge_lock); }

/* When to look again, unless something happens before that is looked for (use_set_look). */
static void set_due(bool more, size_t own)
{
    size_t step = returns_look(use_live());
    if (own > LAW_CALL_MOST) /* of which each may be more than a step, and costs less than a look */
        step = larger(step, (own + LAW_CALL_MOST) * LAW_TINY_PART);
    store_relaxed(&purge_goes_on, more);
    store_relaxed(&purge_due, clock_now() + (more ? 0 : step));
    use_set_look();
}

COLD void purge_step(bool freed, size_t own)
{
    if (!begin())
        return;
    if (limits_due())
        limits_look();
    take_stock();
    struct finding found = {MISUSE_NONE, NULL};
    struct finding old = {MISUSE_NONE, NULL};
    bool waits = load_relaxed(&limits.waits);
    bool much = freed && !waits && find_much();
    if (!freed)
        old = grow_older();
    if (much || use_excess() > 0)
        found = large_empty(cache_current());
    if (much)
        owe_all();
    if (freed && !waits && use_returns() && vain.moment - hold.moment >= LAW_HOLD_MS)
        old = find_old();
    size_t began = giving_begins();
    size_t most = CALL_MOST + own;
    size_t done = give_beyond(most);
    bool more = load_relaxed(&purge_goes_on);
    if (freed || limits.shrinks)
        more = (!waits || limits.shrinks) && give_owed(most - done);
    more |= done >= most;
    giving_ends(began);
    if (!more)
        end_shrinking();
    set_due(more, own);
    lock_release(&purge_lock);
    report_late(found, NULL);
    report_late(old, NULL);
}

void purge_beyond(void)
{
    lock_take(&purge_lock);
    take_stock();
    store_relaxed(&use.vain, 0);
    while (give_beyond(SIZE_MAX) > 0) /* each time of one kind */
        ;
    use_set_look();
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
    while (done > 0 && (limits_due() || beyond_limits()) && begin()) {
        if (limits_due())
            limits_look();
        done = beyond_limits() ? give_beyond(SIZE_MAX) : 0;
        use_set_look();
        lock_release(&purge_lock);
    }
}

bool purge_by_time(void)
{
    static size_t last_tick; /* the allocation clock at the last; lock: purge */
    if (!lock_enter(&purge_lock))
        return true; /* a fork has everything, and may last; a thread's end may wait for this one */
    if (limits_due())
        limits_look();
    take_stock();
    bool moved = last_tick != clock_now();
    last_tick = clock_now();
    struct finding found = {MISUSE_NONE, NULL};
    if (use_returns())
        found = find_old();
    if (!load_relaxed(&limits.waits) && find_much()) /* the scavenger has ended */
        owe_all();
    lock_release(&purge_lock);
    report_late(found, NULL);

    /* In steps, so that a fork need not wait long. */
    size_t before = counters_returned();
    for (bool more = true; more;) {
        if (!lock_enter(&purge_lock))
            return true;
        size_t began = giving_begins();
        more = give_beyond(CALL_MOST) > 0;
        more |= give_owed(CALL_MOST);
        if (!more)
            end_shrinking();
        giving_ends(began);
        set_due(false, 0);
        lock_release(&purge_lock);
    }
    purge_beyond_limits();
    return moved || counters_returned() != before;
}

size_t purge_all(struct cache *mine, size_t pad)
{
    if (mine != NULL)
        report_late(cache_empty(mine), NULL);
    if (!lock_enter(&purge_lock))
        return 0; /* a fork has everything, and may last */
    struct finding found = transfers_decay(true);
    struct purge_room room = {SIZE_MAX, SIZE_MAX};
    size_t began = os_nanoseconds();
    shards_sparse_anew();
    size_t bytes = shards_purge(clock_now(), &room);
    bytes += pad < SLICE ? superslabs_release()
                         : slices_purge(excess(slices_dirty(), pad / SLICE)) * SLICE;
    bytes += huge_purge(SIZE_MAX);
    reserve_release();
    giving_ends(began);
    owed.slices = owed.huge = 0;
    owed.pages = false;
    end_shrinking();
    use_set_look();
    lock_release(&purge_lock);
    report_late(found, NULL);
    return bytes;
}

bool purge_check_frees(struct cache *mine, bool on)
{
    bool before = closed_for(CLOSED_CHECKED);
    heap_close(CLOSED_CHECKED, on);
    /* What lies in a stack counts as taken: freed again, it would not be seen. */
    if (on && !before)
        purge_all(mine, 0);
    return before;
}

void purge_stop(void) { lock_take(&purge_lock); }
bool purge_try_stop(void) { return lock_try(&purge_lock); }
void purge_go_on(void) { lock_release(&purge_lock); }

/* ---- the soft limit ---- */

static struct {
    soft_limit_called called;
    void *argument;
} listener; /* lock: purge */

void soft_limit_listen(soft_limit_called called, void *argument)
{
    purge_stop();
    listener.called = called;
    listener.argument = argument;
    purge_go_on();
}

COLD void soft_limit_act(struct cache *mine)
{
    ASSERT(lock_none_held());
    if (fork_holds_locks() || !purge_try_stop())
        return; /* another call does it */
    soft_limit_called called = listener.called;
    void *argument = listener.argument;
    bool passed = __atomic_exchange_n(&limits.passed, false, __ATOMIC_RELAXED);
    purge_go_on();
    if (!passed)
        return;
    KEEP_ERRNO;
    purge_all(mine, 0);
    if (load_relaxed(&use.held) <= load_relaxed(&limits.soft))
        store_relaxed(&limits.watched, true);
    else if (called != NULL)
        called(argument);
}

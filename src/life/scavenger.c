#include "life/scavenger.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>

#include "base/policy.h"
#include "front/cache.h"
#include "learn/laws.h"
#include "learn/returns.h"
#include "life/profiling.h"
#include "life/purge.h"
#include "life/settings.h"
#include "os/lock.h"
#include "os/os.h"

enum { NONE, STARTING, RUNNING, ENDING };

static int state; /* atomic: one of these; what those wait on who have to know */
static int call;  /* atomic: 1 when there is work or an end; what it sleeps on */
bool scavenger_dozes;
static bool ends; /* atomic */
static pthread_t thread;
static size_t itself;       /* which thread it is, by its locks; atomic */
static size_t asking;       /* which one asks libc to start or end it; atomic */
static size_t born;         /* the time of day; for the thread that starts or ends it */
static size_t starts_left;  /* atomic */
static size_t starts_until; /* the time of day when there are all of them again; atomic */

/* How long it sleeps at most while there is nothing to do: an order from outside waits no longer.
 */
#define HEARTBEAT_MS 1000

static void *scavenge(void *unused)
{
    (void)unused;
    store_relaxed(&itself, thread_number());
    if (policy.extra_calls)
        os_thread_name("hakmem");
    for (unsigned idle = 0; !load_acquire(&ends);) {
        bool dozes = idle >= LAW_IN_A_ROW && !load_relaxed(&guards_wait);
        store_relaxed(&scavenger_dozes, dozes);
        os_wait(&call, 0, dozes ? HEARTBEAT_MS : RETURNS_ROUND_MS);
        if (orders_waiting())
            orders_obey(NULL);
        guards_look();
        if (load_acquire(&call) == 0)
            idle = purge_by_time() ? 0 : idle + 1;
    }
    return NULL;
}

static void scavenger_call(void)
{
    store_release(&call, 1);
    os_wake(&call);
}

COLD void scavenger_roused(void)
{
    store_relaxed(&scavenger_dozes, false);
    os_wake(&call);
}

/* ---- its start and its end ----
 *
 * Threads count themselves when they come and when they go, and then look at the state. A thread
 * that finds that the state has to change first writes that into the state, and then counts the
 * threads again. So if one thread starts or ends the scavenger while another comes or goes, at
 * least one of them sees the other, and the later one waits and looks again.
 * tests/models/alone.pml has all cases. */

static bool alone(void)
{
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    return caches_living() <= 1;
}

bool scavenger_calls(void)
{
    size_t me = thread_number();
    return me == load_relaxed(&itself) || me == load_relaxed(&asking);
}

/* Where something else looks after threads' starts and ends, the scavenger may allocate, and so may
 * libc's functions that start and end it. These don't wait for what they are in the middle of; and
 * nobody waits for a start where the start is all that is wanted. */
static bool waits_for(int now, int to)
{
    return !scavenger_calls() && (now == ENDING || (now == STARTING && to == ENDING));
}

/* False where the state is another. */
static bool change(int from, int to)
{
    bool waited = false;
    int now = from;
    while (
        !__atomic_compare_exchange_n(&state, &now, to, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST) &&
        waits_for(now, to)) {
        os_wait(&state, now, 0);
        waited = true;
        now = from;
    }
    if (waited)
        os_wake(&state); /* one is woken at a time */
    return now == from;
}

static void settle(int to)
{
    store_relaxed(&limits.waits, to == RUNNING);
    use_set_look();
    __atomic_store_n(&state, to, __ATOMIC_SEQ_CST);
    os_wake(&state);
}

/* Signals stay blocked in a thread that starts with all of them blocked. Its policy and its
 * priority are the starting thread's: asking for others would be a call of the kernel that no
 * program need expect. */
static bool thread_start(void)
{
    ASSERT(lock_none_held());
    pthread_attr_t attributes;
    if (pthread_attr_init(&attributes) != 0)
        return false;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_attr_setstacksize(&attributes, 256 * KiB);
    bool started = pthread_create(&thread, &attributes, scavenge, NULL) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return started;
}

/* A program that makes short threads one after another would pay for two threads each time. So with
 * only one other thread the scavenger is started a few times in the time of a round. */
static bool may_start(void)
{
    if (!policy.scavenger || fork_holds_locks() || alone())
        return false;
    size_t now = os_milliseconds();
    if (now >= load_relaxed(&starts_until)) {
        store_relaxed(&starts_until, now + RETURNS_ROUND_MS);
        store_relaxed(&starts_left, LAW_IN_A_ROW);
    }
    bool one_other = caches_living() <= 2;
    return load_relaxed(&starts_left) > 0 || !one_other;
}

/* What the thread needs of libc it may take from malloc: the caller holds no lock of ours, and none
 * of libc's that starting a thread takes. */
static COLD void scavenger_start(void)
{
    ASSERT(lock_none_held());
    while (may_start() && change(NONE, STARTING)) {
        bool wanted = !alone();
        bool started = false;
        if (wanted) {
            KEEP_ERRNO;
            size_t left = load_relaxed(&starts_left);
            store_relaxed(&starts_left, left - (left > 0));
            born = os_milliseconds();
            store_relaxed(&asking, thread_number());
            started = thread_start();
            store_relaxed(&asking, 0);
        }
        settle(started ? RUNNING : NONE);
        if (wanted)
            return; /* where it could not be started the next new thread tries again */
    }
}

COLD void scavenger_noted(struct cache *cache)
{
    cache->fresh = false;
    scavenger_start();
}

static void end_thread(void)
{
    ASSERT(lock_none_held());
    KEEP_ERRNO;
    store_release(&ends, true);
    scavenger_call();
    store_relaxed(&asking, thread_number());
    pthread_join(thread, NULL);
    store_relaxed(&asking, 0);
    store_relaxed(&itself, 0);
    store_relaxed(&ends, false);
    store_relaxed(&call, 0);
    bool worked = os_milliseconds() - born >= RETURNS_ROUND_MS;
    settle(NONE);
    if (worked || use_dirty() >= load_relaxed(&limits.look))
        purge_by_time();
}

COLD void scavenger_thread_ends(void)
{
    if (!alone() || !change(RUNNING, ENDING))
        return;
    if (alone())
        end_thread();
    else
        settle(RUNNING);
}

/* Writes as little as it can: each page that a child writes is copied. */
void scavenger_fork_child(void)
{
    if (state == NONE)
        return;
    state = NONE;
    limits.waits = false;
    ends = false;
    call = 0;
    itself = asking = 0;
}

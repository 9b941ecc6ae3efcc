#include "life/life.h"

#include <errno.h>
#include <pthread.h>

#include "back/huge.h"
#include "back/map.h"
#include "back/reserve.h"
#include "back/slices.h"
#include "back/superslabs.h"
#include "base/atomic.h"
#include "base/policy.h"
#include "front/cache.h"
#include "front/hardened.h"
#include "front/owners.h"
#include "front/stacks.h"
#include "heap/hardening.h"
#include "heap/shards.h"
#include "heap/transfer.h"
#include "life/limits.h"
#include "life/profiling.h"
#include "life/purge.h"
#include "life/recording.h"
#include "life/scavenger.h"
#include "life/statistics.h"
#include "options/options.h"
#include "os/lock.h"
#include "os/os.h"
#include "profile/samples.h"
#include "record/ring.h"
#include "report/accounts.h"
#include "report/report.h"

/* Bytes of free memory of small blocks that a hardened heap looks at, at most, when the process
 * ends by exit, for what was written to them. A process with 1 GiB of blocks of 100 bytes, of which
 * half are free, ends in 154 ms without this and in 163 with it. Other numbers were not measured.
 */
#define END_BYTES (64 * MiB)

static struct lock start_lock FORK_PAGE = LOCK(START);
static bool started;      /* atomic; set under the lock */
static pthread_key_t key; /* its destructor tells that a thread ends */
static bool key_made;     /* atomic */

/* While the first thread asks libc for the key, others make do without a cache: one whose end is
 * not told could not be reached in it, should it never take the slow path again. Not for ever,
 * since a fork meanwhile has a child in which nobody asks. */
static bool key_asked; /* atomic: libc has answered */
static size_t waits;   /* atomic */
#define WAITS_MOST 10000

static bool key_awaited(void)
{
    return !load_acquire(&key_asked) && add_relaxed(&waits, 1) < WAITS_MOST;
}
static bool left_others
    FORK_PAGE; /* whether a fork left threads behind that may have been at work */

/* The calling thread's cache, or null. Only one whose thread's end will be told may be closed. */
static struct cache *thread_owned(void)
{
    struct cache *mine = cache_current();
    if (mine == &cache_gone)
        return NULL;
    if (mine != &cache_none)
        return mine;
    if (!load_acquire(&key_made))
        return NULL;
    /* What libc's function allocates, if another library has replaced it, has no cache. */
    store_relaxed(&cache_mine, &cache_gone);
    struct cache *owned = pthread_getspecific(key);
    store_relaxed(&cache_mine, &cache_none);
    return owned;
}

static void thread_end(void *value)
{
    if (unlikely(closed_for(CLOSED_RECORDED)))
        recording_thread_ends(value);
    report_late(cache_delete(value), RETURN_ADDRESS);
    purge_beyond_limits();
    scavenger_thread_ends();
}

/* Free memory of a hardened heap to which something wrote. The bound keeps the end quick. */
static SLOW void *written_at_end(void)
{
    size_t most = END_BYTES;
    void *found = hardening.guards ? huge_written() : NULL;
    if (found != NULL || !hardening.zeroes)
        return found;
    found = caches_written(&most);
    if (found == NULL)
        found = shards_written(&most);
    if (found == NULL && slices_try_stop()) {
        found = slices_written(&most);
        slices_go_on();
    }
    return found;
}

/* What this thread's stacks hold that was freed twice, or never handed out, shows when it goes back
 * to its slab, and in a hardened heap what was written to while it was free. A signal handler that
 * interrupted the heap may call exit, and what is locked then stays locked: so nobody waits here.
 */
static struct finding found_at_end(void)
{
    struct finding found = {MISUSE_NONE, NULL};
    struct cache *cache = thread_owned();
    if ((cache == NULL && !hardened()) || !purge_try_stop())
        return found;
    if (cache != NULL)
        found = cache_empty_at_end(cache);
    bool looks = (hardening.guards || hardening.zeroes) && found.what == MISUSE_NONE;
    void *written = looks ? written_at_end() : NULL;
    if (written != NULL)
        found = (struct finding){MISUSE_WRITTEN, written};
    purge_go_on();
    return found;
}

/* The orderly end of the process. */
static void process_end(void)
{
    limits_end();
    report_late(found_at_end(), RETURN_ADDRESS);
    if (journal_open())
        learned_print();
    if (statistics_wanted())
        statistics_end();
    if (closed_for(CLOSED_RECORDED))
        recording_end();
}

/* Functions of libc's may be replaced by those of other libraries, which may allocate, load further
 * libraries, or wait for a thread that allocates. So none is called while a lock is held; here this
 * thread has a cache already. */
static void register_with_libc(void)
{
    ASSERT(lock_none_held());
    if (pthread_key_create(&key, thread_end) == 0)
        store_release(&key_made, true);
    os_at_fork(fork_prepare, fork_parent, fork_child);
    os_at_end(process_end);
}

/* True for the thread that does it. The lock is held in there: no function of libc's is called. */
static COLD bool process_start(void)
{
    ASSERT(lock_none_held());
    const struct os_given given = os_ask();
    lock_take(&start_lock);
    bool first = !started;
    if (first) {
        os_start(&given);
        map_start();
        options_start();
        store_relaxed(&limits.space, os_address_space());
        if (limits_wanted())
            limits_set();
        hardening_start();
        slots_start(os_random());
        shards_start();
        unsigned reasons = policy.check_frees != 0 ? CLOSED_CHECKED : 0;
        reasons |= hardening.sizes ? CLOSED_SIZES : 0;
        store_relaxed(&closings, reasons | (hardened() ? CLOSED_HARDENED : 0));
        store_release(&started, true);
    }
    lock_release(&start_lock);
    return first;
}

COLD struct cache *thread_cache_make(void)
{
    bool first = !load_acquire(&started) && process_start();
    if (cache_current() == &cache_gone)
        return NULL;
    struct cache *cache = thread_owned();
    bool closed = closed_for(CLOSED_CHECKED);
    if (cache != NULL && closed)
        report_late(cache_shut(cache), NULL);
    if (cache != NULL)
        return closed || !cache_resume(cache) ? NULL : cache;
    if (!closed_for(CLOSED_CHECKED) && (first || !key_awaited()))
        cache = cache_new();
    KEEP_ERRNO;
    if (first) {
        register_with_libc();
        if (statistics_wanted())
            statistics_start();
        if ((policy.profile | policy.profile_rss | policy.guards_a_second) != 0)
            profile_begin();
        if (policy.record)
            recording_begin();
        store_release(&key_asked, true);
    }
    if (cache != NULL)
        thread_ask_for_end(cache);
    return cache;
}

/* libc may allocate in here too, and come back by the slow path. */
COLD void thread_ask_for_end(struct cache *cache)
{
    ASSERT(lock_none_held());
    if (cache->asking || !load_acquire(&key_made))
        return;
    KEEP_ERRNO;
    cache->asking = true;
    bool told = pthread_setspecific(key, cache) == 0;
    cache->asking = false;
    if (told)
        cache_ends_with_thread(cache);
}

/* A fork holds every cache's lock, so no thread is in the middle of anything that the child would
 * inherit. Handlers that the program registered before ours run inside ours, and may allocate. A
 * process of one thread locks nothing, so that a signal handler that interrupted the slow path may
 * fork.
 *
 * Libc takes its own locks after this. A thread that holds one of them and comes to a lock of the
 * heap does not wait until the fork is over: see lock_enter. */
void fork_prepare(void)
{
    if (closed_for(CLOSED_RECORDED))
        recording_fork_prepare(thread_owned());
    if (os_single_threaded())
        return;
    heap_lock_all();
    fork_hold_locks(true);
    store_relaxed(&fork_state, FORK_HOLDS);
}

/* Before the locks are free: who finds the state clear either gets them, or meets another fork. */
static void fork_ends(void)
{
    fork_hold_locks(false);
    __atomic_store_n(&fork_state, FORK_NONE, __ATOMIC_SEQ_CST);
}

/* What others had to leave undone meanwhile. */
static void do_what_was_left(void)
{
    ASSERT(lock_none_held());
    report_late(deferred_drain(), NULL);
    report_late(caches_end_left(), NULL);
}

void fork_parent(void)
{
    if (!fork_holds_locks())
        return;
    fork_ends();
    heap_unlock_all();
    do_what_was_left();
    reserve_release();
    scavenger_thread_ends();
}

void fork_child(void)
{
    scavenger_fork_child();
    if (closed_for(CLOSED_RECORDED))
        recording_fork_child();
    fault_fork_child();
    if (statistics_wanted())
        statistics_fork_child();
    if (load_relaxed(&profile_used))
        samples_fork_child();
    if (hardened())
        hardened_fork_child(thread_owned(), os_nanoseconds());
    if (!fork_holds_locks())
        return;
    fork_ends();
    ASSERT(lock_all_held());
    left_others = true;
    huge_fork_child();
    journal_fork_child();
    reserve_fork_child();
    caches_fork_unlock_child(thread_owned());
    purge_go_on();
    lock_release(&start_lock);
    do_what_was_left();
}

void heap_lock_all(void)
{
    ASSERT(lock_none_held());
    lock_take(&start_lock);
    purge_stop();
    caches_fork_lock();
}

void heap_unlock_all(void)
{
    caches_fork_unlock_parent();
    purge_go_on();
    lock_release(&start_lock);
}

void heap_count(struct accounts *accounts)
{
    thread_cache(); /* the process's start */
    heap_lock_all();
    account(accounts);
    heap_unlock_all();
}

bool heap_quiet(void) { return os_single_threaded() && !left_others; }

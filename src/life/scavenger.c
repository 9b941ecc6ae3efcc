#include "life/scavenger.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>

#include "back/large.h"
#include "back/superslab.h"
#include "base/policy.h"
#include "front/roster.h"
#include "life/upkeep.h"
#include "os/os.h"

/* After so many rounds without work it waits until somebody has some. */
#define ROUNDS_IDLE 3

/* What lies in stacks is worth a thread after so many refills, were all caches like the caller's:
 * one thread's refills are few where hundreds use the heap a little each. */
#define REFILLS_WORTH 64

/* And so is so much free memory, or a large block. */
#define KEPT_WORTH MiB

enum { NONE, STARTING, RUNNING, REFUSED };

static int state; /* atomic: one of these */
static int call;  /* atomic: 1 when there is work or an end; what it sleeps on */
static bool ends; /* atomic */
static pthread_t thread;
bool scavenger_dozes, scavenger_asked;

static void *scavenge(void *unused)
{
    (void)unused;
    os_thread_name("hakmem");
    for (unsigned idle = 0; !load_acquire(&ends);) {
        bool dozes = idle >= ROUNDS_IDLE;
        store_release(&scavenger_dozes, dozes);
        os_wait(&call, 0, dozes ? 0 : policy.scavenge_ms);
        store_relaxed(&scavenger_dozes, false);
        if (load_acquire(&call) != 0) {
            store_relaxed(&call, 0);
            idle = 0;
        } else if (!dozes) {
            idle = upkeep_by_time() ? 0 : idle + 1;
        }
    }
    return NULL;
}

static bool thread_start(void)
{
    pthread_attr_t attributes;
    const struct sched_param plain = {0};
    if (pthread_attr_init(&attributes) != 0)
        return false;
    pthread_attr_setstacksize(&attributes, 256 * KiB);
    /* It serves all threads, whatever the one is that starts it. */
    pthread_attr_setinheritsched(&attributes, PTHREAD_EXPLICIT_SCHED);
    pthread_attr_setschedpolicy(&attributes, SCHED_OTHER);
    pthread_attr_setschedparam(&attributes, &plain);
    bool started = pthread_create(&thread, &attributes, scavenge, NULL) == 0;
    pthread_attr_destroy(&attributes);
    return started;
}

/* What the thread needs of libc it may take from malloc: the caller holds no lock of ours, and none
 * of libc's that starting a thread takes: it is in malloc, never in free, which libc calls with its
 * list of stacks locked. */
static COLD void scavenger_start(void)
{
    int none = NONE;
    if (!__atomic_compare_exchange_n(&state, &none, STARTING, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_RELAXED))
        return;
    int saved = errno;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool started = thread_start();
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    store_release(&state, started ? RUNNING : REFUSED);
    errno = saved;
}

bool scavenger_runs(void) { return load_relaxed(&state) == RUNNING; }

static void scavenger_call(void)
{
    store_release(&call, 1);
    os_wake(&call);
}

static bool woken(void)
{
    if (!load_acquire(&scavenger_dozes))
        return false;
    store_relaxed(&scavenger_dozes, false);
    scavenger_call();
    return true;
}

/* Whether there should be one and is none. */
static bool is_missing(void)
{
    return load_relaxed(&state) == NONE && policy.scavenger && caches_living() > 1;
}

static void start_if_missing(void)
{
    if (is_missing() && !os_single_threaded() && !fork_holds_locks)
        scavenger_start();
}

COLD void scavenger_ask(void)
{
    if (is_missing())
        store_relaxed(&scavenger_asked, true);
}

COLD void scavenger_wake(void)
{
    if (!woken())
        scavenger_ask();
}

COLD void scavenger_want(size_t refills)
{
    woken();
    if ((refills + 1) * caches_living() >= REFILLS_WORTH ||
        slices_retained() * SLICE + large_kept() >= KEPT_WORTH)
        start_if_missing();
}

COLD void scavenger_want_large(void)
{
    woken();
    store_relaxed(&scavenger_asked, false);
    start_if_missing();
    scavenger_ask(); /* it could not be started just now */
}

COLD void scavenger_end(void)
{
    int running = RUNNING;
    if (!__atomic_compare_exchange_n(&state, &running, STARTING, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_RELAXED))
        return;
    int saved = errno;
    store_release(&ends, true);
    scavenger_call();
    pthread_join(thread, NULL);
    store_relaxed(&ends, false);
    store_release(&state, NONE);
    errno = saved;
}

/* Writes as little as it can: each page that a child writes is copied. */
void scavenger_fork_child(void)
{
    if (state == NONE)
        return;
    state = NONE;
    scavenger_dozes = ends = false;
    call = 0;
}

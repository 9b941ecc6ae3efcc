#include "life/life.h"

#include <errno.h>
#include <pthread.h>

#include "back/large.h"
#include "back/map.h"
#include "back/meta.h"
#include "back/superslab.h"
#include "base/atomic.h"
#include "heap/shard.h"
#include "heap/transfer.h"
#include "watch/report.h"

static struct lock start_lock;
static bool started;      /* atomic; set under the lock */
static pthread_key_t key; /* its destructor tells that a thread ends */
static bool key_made;     /* atomic */
static bool fork_alone;   /* whether a fork took no locks; nobody else is there to read it */

static void thread_end(void *value)
{
    struct cache *cache = value;
    cache_mine = (struct cache *)&cache_gone;
    struct finding found = cache_delete(cache);
    if (found.what != MISUSE_NONE)
        report_misuse("free", found.what, found.where);
}

/* libc may allocate in here: this thread has a cache already and the lock is free again. */
static void register_with_libc(void)
{
    if (pthread_key_create(&key, thread_end) == 0)
        store_release(&key_made, true);
    pthread_atfork(fork_prepare, fork_parent, fork_child);
}

COLD struct cache *thread_cache_make(void)
{
    if (cache_mine == &cache_gone)
        return NULL;
    bool first = false;
    if (!load_acquire(&started)) {
        lock_take(&start_lock);
        if (!started) {
            os_start();
            superslabs_start(os_random());
            shards_start(os_cpus());
            first = true;
            store_release(&started, true);
        }
        lock_release(&start_lock);
    }
    struct cache *cache = cache_new();
    if (cache != NULL)
        cache_mine = cache;
    int saved = errno;
    if (first)
        register_with_libc();
    if (cache != NULL && load_acquire(&key_made))
        pthread_setspecific(key, cache);
    errno = saved;
    return cache;
}

/* In the order in which they may be held together: a fork holds every lock, so no thread is in the
 * middle of anything that the child would inherit. Handlers that the program registered before ours
 * run inside ours, and may allocate. A process of one thread locks nothing, so that a signal
 * handler that interrupted the door may fork. */
void fork_prepare(void)
{
    fork_alone = os_single_threaded();
    if (fork_alone)
        return;
    lock_take(&start_lock);
    caches_fork_lock();
    transfer_fork_lock();
    shards_fork_lock();
    large_fork_lock();
    superslabs_fork_lock();
    map_fork_lock();
    meta_fork_lock();
    fork_holds_locks = true;
}

static void fork_unlock(void)
{
    fork_holds_locks = false;
    meta_fork_unlock();
    map_fork_unlock();
    superslabs_fork_unlock();
    large_fork_unlock();
    shards_fork_unlock();
    transfer_fork_unlock();
}

void fork_parent(void)
{
    if (fork_alone)
        return;
    fork_unlock();
    caches_fork_unlock_parent();
    lock_release(&start_lock);
}

void fork_child(void)
{
    if (fork_alone)
        return;
    fork_unlock();
    caches_fork_unlock_child(cache_mine);
    lock_release(&start_lock);
}

#include "front/journal.h"

#include "base/atomic.h"
#include "base/counters.h"
#include "base/policy.h"
#include "heap/classes.h"
#include "heap/shards.h"
#include "os/lock.h"
#include "os/os.h"

static struct lock lock FORK_PAGE = LOCK(JOURNAL);
static struct journal_entry lines[JOURNAL_MOST]; /* lock: lock */
static size_t count;                             /* atomic; the same */

void journal_add(const struct journal_entry *entry)
{
    lock_take(&lock);
    lines[count % JOURNAL_MOST] = *entry;
    store_relaxed(&count, count + 1);
    lock_release(&lock);
}

void journal_compaction(unsigned shard, unsigned cls, bool before)
{
    bool now = shard_compacts(shard, cls);
    if (likely(now == before) || !journal_open())
        return;
    const struct journal_entry entry = {.subject = now ? JOURNAL_COMPACTS : JOURNAL_COMPACTED,
                                        .thread = os_thread_id(),
                                        .size = size_classes[cls].size,
                                        .clock = clock_now()};
    journal_add(&entry);
}

size_t journal_count(void) { return load_relaxed(&count); }

/* At the end of the process, which may come in a signal handler that interrupted journal_add: so it
 * waits for nobody. Without a cache's lock, so a fork may come meanwhile. */
#define TRIES 1000

bool journal_read(size_t number, struct journal_entry *entry)
{
    for (int tries = 1; !lock_try_unguarded(&lock); tries++)
        if (tries == TRIES)
            return false;
    bool there = number < count && count - number <= JOURNAL_MOST;
    *entry = lines[number % JOURNAL_MOST];
    lock_release(&lock);
    return there;
}

void journal_fork_child(void)
{
    if (lock.state != 0)
        lock_reset(&lock);
}

#include "front/journal.h"

#include "base/atomic.h"
#include "os/lock.h"

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

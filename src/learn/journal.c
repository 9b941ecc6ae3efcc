#include "learn/journal.h"

#include "os/os.h"

static struct lock lock FORK_PAGE = LOCK(JOURNAL);
static struct journal_entry lines[JOURNAL_MOST]; /* lock: lock */
static size_t count;                             /* the same */

void journal_add(const struct journal_entry *entry)
{
    lock_take(&lock);
    lines[count++ % JOURNAL_MOST] = *entry;
    lock_release(&lock);
}

size_t journal_count(void)
{
    lock_take(&lock);
    size_t now = count;
    lock_release(&lock);
    return now;
}

bool journal_read(size_t number, struct journal_entry *entry)
{
    lock_take(&lock);
    bool there = number < count && count - number <= JOURNAL_MOST;
    *entry = lines[number % JOURNAL_MOST];
    lock_release(&lock);
    return there;
}

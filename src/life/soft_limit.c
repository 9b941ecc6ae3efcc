#include "life/soft_limit.h"

#include "life/purge.h"
#include "os/keep_errno.h"
#include "os/lock.h"

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

#include "life/limits.h"

#include <errno.h>

#include "base/policy.h"
#include "base/watch.h"
#include "learn/keep.h"
#include "os/lock.h"
#include "os/os.h"

static struct {
    size_t limit;                   /* the lowest, as it was read last */
    size_t moment;                  /* when that was, in milliseconds */
    bool denied;                    /* the process may not ask */
} containers = {.limit = NO_LIMIT}; /* each is atomic */

size_t limits_container(void) { return load_relaxed(&containers.limit); }

static size_t or_none(size_t limit) { return limit == 0 ? NO_LIMIT : limit; }

/* From what is known of both kinds. */
static void apply(struct cgroup_memory memory)
{
    size_t soft = or_none(load_relaxed(&policy.soft_limit_bytes));
    size_t hard = or_none(load_relaxed(&policy.hard_limit_bytes));
    size_t keep = smaller(load_relaxed(&policy.keep_bytes),
                          keep_under_limit(smaller(memory.limit, smaller(soft, hard))));
    if (memory.close)
        keep = smaller(keep, LAW_LITTLE);
    store_relaxed(&limits.keep, keep);
    store_relaxed(&limits.stays, load_relaxed(&policy.keep_bytes) == KEEP_ALL);
    store_relaxed(&limits.full, smaller(keep_full(memory.limit), soft));
    store_relaxed(&limits.soft, soft);
    store_relaxed(&limits.hard, hard);
    use_set_look();
}

COLD void limits_keep(void)
{
    apply((struct cgroup_memory){load_relaxed(&containers.limit), false});
}

COLD void limits_set(void)
{
    if (!load_relaxed(&policy.container_limits))
        store_relaxed(&limits.unread, false);
    limits_keep();
    bool passed = load_relaxed(&use.held) > load_relaxed(&limits.soft);
    store_relaxed(&limits.watched, !passed);
    store_relaxed(&limits.passed, passed);
    store_relaxed(&purge_due, clock_now());
}

void limits_end(void)
{
    store_relaxed(&containers.denied, true);
    store_relaxed(&limits.keep, SIZE_MAX);
    store_relaxed(&limits.full, SIZE_MAX);
    store_relaxed(&limits.stays, true);
}

bool limits_due(void)
{
    if (!load_relaxed(&policy.container_limits) || load_relaxed(&containers.denied))
        return false;
    if (load_relaxed(&containers.limit) == NO_LIMIT && use_dirty() < LAW_IDLE_PART * LAW_LITTLE)
        return false;
    return load_relaxed(&limits.unread) ||
           os_milliseconds() - load_relaxed(&containers.moment) >= 2 * LAW_HOLD_MS;
}

/* What is denied once will be so for ever, as in a sandbox. What is known then still holds. */
COLD void limits_look(void)
{
    ASSERT(lock_rank_held(RANK_PURGE));
    struct cgroup_memory memory;
    int error = cgroup_read(&memory);
    store_relaxed(&containers.moment, os_milliseconds());
    store_relaxed(&limits.unread, false);
    if (error == 0)
        store_relaxed(&containers.limit, memory.limit);
    else
        memory = (struct cgroup_memory){load_relaxed(&containers.limit), false};
    store_relaxed(&containers.denied, error != 0 && error != EMFILE && error != ENFILE);
    apply(memory);
}

const struct watch_limits watch_limits = {
    .bytes = sizeof watch_limits,
    .held = &use.held,
    .soft = &limits.soft,
    .hard = &limits.hard,
    .container = &containers.limit,
};

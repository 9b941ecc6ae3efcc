#include "life/crossing.h"

#include "base/atomic.h"
#include "base/policy.h"
#include "os/self.h"

/* Milliseconds from one look to the next: a look takes some microseconds. */
#define LOOK_MS 10
#define FURTHER 4 /* a part of what was resident */

static size_t looked; /* when; atomic */

static struct {
    size_t option; /* for which these are; all atomic, and right with any value of the others */
    size_t limit;
    unsigned count;
} crossings;

static bool is_due(size_t now)
{
    size_t before = load_relaxed(&looked);
    return now - before >= LOOK_MS &&
           __atomic_compare_exchange_n(&looked, &before, now, false, __ATOMIC_RELAXED,
                                       __ATOMIC_RELAXED);
}

struct crossing crossing_look(size_t now)
{
    struct crossing crossing = {0};
    size_t option = load_relaxed(&policy.profile_rss);
    if (!is_due(now))
        return crossing;
    if (load_relaxed(&crossings.option) != option) {
        store_relaxed(&crossings.option, option);
        store_relaxed(&crossings.limit, option);
    }
    crossing.error = os_resident(&crossing.resident);
    crossing.number = load_relaxed(&crossings.count) + 1;
    crossing.found = crossing.error == 0 && crossing.resident > load_relaxed(&crossings.limit);
    return crossing;
}

void crossing_done(const struct crossing *crossing)
{
    store_relaxed(&crossings.count, crossing->number);
    store_relaxed(&crossings.limit, crossing->resident + crossing->resident / FURTHER);
}

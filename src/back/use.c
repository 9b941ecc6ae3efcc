#include "back/use.h"

#include "back/map.h"
#include "base/assert.h"
#include "base/atomic.h"
#include "base/policy.h"
#include "learn/keep.h"

struct use use;
size_t purge_due;

static size_t used_now(void)
{
    size_t all = load_relaxed(&use.slices) + load_relaxed(&use.huge);
    size_t stacked = load_relaxed(&use.stacked);
    return all > stacked ? all - stacked : 0;
}

size_t use_excess_with(size_t more)
{
    if (load_relaxed(&keeping.forever))
        return 0;
    size_t dirty = load_relaxed(&use.dirty_slices) * SLICE + load_relaxed(&use.dirty_huge);
    size_t all = load_relaxed(&use.slices) + load_relaxed(&use.huge) + dirty + more;
    size_t most = larger(load_relaxed(&use.most), used_now() + more);
    return excess(all, keep_limit(most, load_relaxed(&use.learned)));
}

static void use_grew(bool fresh)
{
    size_t now = used_now();
    if (now > load_relaxed(&use.most))
        store_relaxed(&use.most, now);
    if (fresh && unlikely(use_excess() > 0))
        store_relaxed(&purge_due, clock_now());
}

void use_slices_more(size_t bytes, bool fresh)
{
    store_relaxed(&use.slices, use.slices + bytes);
    use_grew(fresh);
}

void use_huge_more(size_t bytes, bool fresh)
{
    store_relaxed(&use.huge, use.huge + bytes);
    use_grew(fresh);
}

void use_slices_less(size_t bytes)
{
    ASSERT(bytes <= use.slices);
    store_relaxed(&use.slices, use.slices - bytes);
}

void use_huge_less(size_t bytes)
{
    ASSERT(bytes <= use.huge);
    store_relaxed(&use.huge, use.huge - bytes);
}

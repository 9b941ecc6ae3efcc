#include "back/use.h"

#include "back/map.h"
#include "base/atomic.h"
#include "base/defs.h"
#include "base/policy.h"
#include "learn/keep.h"
#include "learn/returns.h"

struct use use;
size_t purge_due;

static size_t used_now(void)
{
    size_t all = load_relaxed(&use.slices) + load_relaxed(&use.huge);
    size_t stacked = load_relaxed(&use.stacked);
    return all > stacked ? all - stacked : 0;
}

size_t use_dirty(void)
{
    return load_relaxed(&use.dirty_slices) * SLICE + load_relaxed(&use.dirty_huge);
}

size_t use_live(void) { return excess(used_now(), load_relaxed(&use.spare)); }

/* Whether what may be kept depends on what is in use, beside the limits of memory. */
static bool keeps_by_use(void)
{
    return load_relaxed(&policy.keep_bytes) == AUTO && !load_relaxed(&limits.stays);
}

bool use_grown(void)
{
    return load_relaxed(&use.held) >= load_relaxed(&limits.grown) && keeps_by_use();
}

void use_shrinks(bool does)
{
    store_relaxed(&limits.shrinks, does);
    if (!does)
        store_relaxed(&limits.grown,
                      keep_limit(larger(load_relaxed(&use.most), load_relaxed(&use.held)),
                                 load_relaxed(&use.vain)));
}

bool use_low(void) { return returns_low(use_live(), load_relaxed(&use.most)); }

bool use_returns(void)
{
    size_t below = returns_below(load_relaxed(&use.vain), load_relaxed(&use.most));
    return use_live() < below && !load_relaxed(&limits.stays);
}

/* What may be kept, where so much is held. */
static size_t keep_where_held(size_t all)
{
    size_t keep = load_relaxed(&limits.keep);
    return all > load_relaxed(&limits.full) ? smaller(keep, LAW_LITTLE) : keep;
}

size_t use_excess(void)
{
    size_t held = load_relaxed(&use.held);
    size_t kept = use_dirty() + load_relaxed(&use.stacked);
    size_t beyond = excess(kept, keep_where_held(held));
    if (!load_relaxed(&limits.shrinks) || !keeps_by_use())
        return beyond;
    return larger(beyond, excess(held, load_relaxed(&use.most)));
}

COLD bool use_keeps_little(size_t more)
{
    size_t held = load_relaxed(&use.held) + more;
    size_t most = larger(load_relaxed(&use.most), used_now() + more);
    return use_dirty() + load_relaxed(&use.stacked) <= keep_where_held(held) &&
           (!keeps_by_use() || held <= keep_limit(most, load_relaxed(&use.vain)));
}

/* ---- limits ---- */

struct limits limits = {.keep = SIZE_MAX,
                        .full = SIZE_MAX,
                        .soft = SIZE_MAX,
                        .hard = SIZE_MAX,
                        .look = LAW_IDLE_PART * LAW_LITTLE,
                        .grown = LAW_SMALL_PART * LAW_LITTLE,
                        .space = SIZE_MAX,
                        .unread = true,
                        .watched = true};

void use_set_look(void)
{
    size_t live = use_live();
    size_t held = load_relaxed(&use.held);
    size_t look = keep_where_held(held);
    size_t below = returns_below(load_relaxed(&use.vain), load_relaxed(&use.most));
    bool may_narrow = load_relaxed(&limits.full) != SIZE_MAX; /* a container's others may grow */
    bool returns = below > 0 && !load_relaxed(&limits.waits);
    if ((load_relaxed(&policy.keep_bytes) == AUTO || may_narrow) && returns)
        look =
            smaller(look, live < below ? returns_from(live)
                                       : larger(excess(live + use_dirty(), below), RETURNS_LEAST));
    if (load_relaxed(&limits.unread))
        look = smaller(look, LAW_IDLE_PART * LAW_LITTLE);
    store_relaxed(&limits.look, look);
}

static COLD void limit_neared(size_t held)
{
    use_set_look();
    if (held <= load_relaxed(&limits.soft) || !load_relaxed(&limits.watched) ||
        !__atomic_exchange_n(&limits.watched, false, __ATOMIC_RELAXED))
        return;
    store_relaxed(&limits.passed, true);
    store_relaxed(&purge_due, clock_now());
}

bool use_hold(size_t bytes)
{
    size_t before = load_relaxed(&use.held);
    if (bytes == 0)
        return true;
    do
        if (unlikely(bytes > excess(load_relaxed(&limits.hard), before)))
            return false;
    while (!__atomic_compare_exchange_n(&use.held, &before, before + bytes, true, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED));
    if (unlikely(before + bytes > load_relaxed(&limits.full)))
        limit_neared(before + bytes);
    return true;
}

void use_hold_anyway(size_t bytes) { add_relaxed(&use.held, bytes); }

void use_let_go(size_t bytes)
{
    ASSERT(bytes <= load_relaxed(&use.held));
    size_t now = sub_relaxed(&use.held, bytes);
    if (unlikely(!load_relaxed(&limits.watched)) &&
        now <= keep_below_limit(load_relaxed(&limits.soft)))
        store_relaxed(&limits.watched, true);
}

void use_dirtied(void)
{
    if (unlikely(use_dirty() >= load_relaxed(&limits.look)))
        store_relaxed(&purge_due, clock_now());
}

/* ---- counting ---- */

static void use_grew(bool fresh)
{
    size_t now = used_now();
    if (now > load_relaxed(&use.most))
        store_relaxed(&use.most, now);
    if (fresh && unlikely(use_excess() > 0 || use_grown()))
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
    if (use.huge > use.huge_most)
        store_relaxed(&use.huge_most, use.huge);
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

void use_block_more(void)
{
    size_t now = add_relaxed(&use.huge_blocks, 1);
    size_t most = load_relaxed(&use.blocks_most);
    while (now > most && !__atomic_compare_exchange_n(&use.blocks_most, &most, now, true,
                                                      __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        ;
}

void use_block_less(void) { sub_relaxed(&use.huge_blocks, 1); }

#include "front/rest.h"

#include "back/use.h"
#include "base/atomic.h"
#include "front/stacks.h"
#include "learn/returns.h"
#include "os/lock.h"
#include "os/os.h"

/* Whether the program has freed all but little of the most that it had of the thread's blocks. */
static COLD bool gave_nearly_all(const struct cache *cache)
{
    ptrdiff_t stacks_hold = (ptrdiff_t)(cache->capacity_bytes + cache->large_bytes);
    ptrdiff_t taken = (ptrdiff_t)cache->taken;
    if (!use_returns())
        return false;
    if (taken <= 0) /* it frees what others took */
        return load_relaxed(&use.low);
    return returns_rests(taken - stacks_hold, cache->most_taken) &&
           returns_rests(taken - (ptrdiff_t)stacks_bytes(cache), cache->most_taken);
}

bool thread_comes_to_rest(const struct cache *cache)
{
    ASSERT(lock_held(cache->lock));
    return gave_nearly_all(cache) && os_milliseconds() >= cache->stays_until;
}

bool thread_still_rests(const struct cache *cache)
{
    return (ptrdiff_t)cache->taken > 0 || load_relaxed(&use.low);
}

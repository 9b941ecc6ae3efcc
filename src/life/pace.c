#include "life/pace.h"

#include "back/map.h"
#include "base/assert.h"
#include "base/atomic.h"
#include "base/counters.h"
#include "learn/rate.h"
#include "os/lock.h"
#include "os/os.h"

static size_t saved = LAW_LITTLE;       /* bytes that may go back; lock: purge */
static size_t last_moment, last_visits; /* of the last look, in milliseconds; atomic */
static size_t last_clock;               /* the allocation clock at the last sign that it goes */
static size_t last_nanosecond;          /* both atomic */

/* Since when the looks have found little done; each is atomic. */
static struct {
    size_t moment, visits, freed;
    bool rested; /* before that, too */
} calm;

static bool stands_still(void)
{
    if (!rate_doubts_clock(clock_now() - load_relaxed(&last_clock)))
        return false;
    size_t now = os_nanoseconds();
    if (now == load_relaxed(&last_nanosecond))
        return true;
    store_relaxed(&last_nanosecond, now);
    store_relaxed(&last_clock, clock_now());
    return false;
}

static void calm_from(size_t now, struct work done, bool rested)
{
    store_relaxed(&calm.moment, now);
    store_relaxed(&calm.visits, done.visits);
    store_relaxed(&calm.freed, done.freed);
    store_relaxed(&calm.rested, rested);
}

static bool is_calm(struct work done, size_t now)
{
    size_t span = rest_judged(now - load_relaxed(&calm.moment));
    /* What compaction flushed is taken off at once, and the clock told up to a slice later, so the
     * difference may be so much below 0. */
    size_t freed = done.freed + SLICE - load_relaxed(&calm.freed);
    return rest_has_few(done.visits - load_relaxed(&calm.visits), span) &&
           rest_frees_little(freed > SLICE ? freed - SLICE : 0, span);
}

/* Nobody looked, and few could have. */
static bool has_slept(struct work done, size_t now)
{
    size_t passed = now - load_relaxed(&last_moment);
    return rest_is_long(passed) && rest_has_few(done.visits - load_relaxed(&last_visits), passed);
}

static bool rests(struct work done, size_t now)
{
    bool long_enough = load_relaxed(&calm.rested) || rest_is_long(now - load_relaxed(&calm.moment));
    return has_slept(done, now) || (long_enough && is_calm(done, now));
}

bool pace_rests(struct work done) { return rests(done, os_milliseconds()); }

bool pace_moves(struct work done)
{
    size_t now = load_relaxed(&last_moment);
    if (os_milliseconds() != now || stands_still())
        return true;
    store_relaxed(&last_visits, done.visits);
    return false;
}

size_t pace_allows(struct work done)
{
    ASSERT(lock_rank_held(RANK_PURGE));
    size_t now = os_milliseconds();
    size_t passed = last_moment == 0 ? 0 : now - last_moment;
    bool rested = last_moment != 0 && rests(done, now);
    if (has_slept(done, now) || rest_is_long(now - calm.moment) || !is_calm(done, now))
        calm_from(now, done, rested);
    saved = rate_saved(saved, passed, rested);
    if (passed == 0 && stands_still())
        saved = SIZE_MAX;
    if (now != last_moment)
        store_relaxed(&last_clock, clock_now());
    store_relaxed(&last_moment, now);
    store_relaxed(&last_visits, done.visits);
    return saved;
}

void pace_spend(size_t bytes) { saved -= bytes < saved ? bytes : saved; }

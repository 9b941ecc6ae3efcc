#include "life/pace.h"

#include "base/assert.h"
#include "base/atomic.h"
#include "base/counters.h"
#include "os/lock.h"
#include "os/os.h"

/* A page that goes back and is faulted in again takes 1 to 4 us. */
#define BYTES_A_MILLISECOND (64 * KiB)

/* A program is asleep, computes, or is served by its stacks if no look comes for so long and it has
 * visited the slow path in few of these milliseconds; or if looks come, but it visits as little,
 * and frees less than the pace gives back. What it has not used for so long may go faster. */
#define REST_MILLISECONDS 50
#define BYTES_A_MILLISECOND_OF_REST MiB

/* What a program may give back that has just begun, and one that has given nothing back for long.
 */
#define AT_FIRST MiB
#define SAVED_MOST (4 * GiB)

/* Who frees so much between two ticks has huge blocks, or a clock that stands still. Without a
 * clock there is no pace. */
#define FREED_IN_NO_TIME GiB

static size_t saved = AT_FIRST;         /* lock: purge */
static size_t last_moment, last_visits; /* of the last look, in milliseconds; atomic */
static size_t last_clock;               /* the allocation clock at the last sign that it goes */
static size_t last_nanosecond;          /* both atomic */

/* Since when the looks have found little done; each is atomic. */
static struct {
    size_t moment, visits, clock;
    bool rested; /* before that, too */
} calm;

static bool stands_still(void)
{
    if (clock_now() - load_relaxed(&last_clock) <= FREED_IN_NO_TIME)
        return false;
    size_t now = os_nanoseconds();
    if (now == load_relaxed(&last_nanosecond))
        return true;
    store_relaxed(&last_nanosecond, now);
    store_relaxed(&last_clock, clock_now());
    return false;
}

static void calm_from(size_t now, size_t visits, bool rested)
{
    store_relaxed(&calm.moment, now);
    store_relaxed(&calm.visits, visits);
    store_relaxed(&calm.clock, clock_now());
    store_relaxed(&calm.rested, rested);
}

static bool is_calm(size_t visits, size_t now)
{
    size_t span = larger(now - load_relaxed(&calm.moment), REST_MILLISECONDS);
    return visits - load_relaxed(&calm.visits) <= span &&
           clock_now() - load_relaxed(&calm.clock) <= span * BYTES_A_MILLISECOND;
}

/* Nobody looked, and few could have. */
static bool has_slept(size_t visits, size_t now)
{
    size_t passed = now - load_relaxed(&last_moment);
    return passed >= REST_MILLISECONDS && visits - load_relaxed(&last_visits) <= passed;
}

static bool rests(size_t visits, size_t now)
{
    bool long_enough =
        load_relaxed(&calm.rested) || now - load_relaxed(&calm.moment) >= REST_MILLISECONDS;
    return has_slept(visits, now) || (long_enough && is_calm(visits, now));
}

bool pace_rests(size_t visits) { return rests(visits, os_milliseconds()); }

bool pace_moves(size_t visits)
{
    size_t now = load_relaxed(&last_moment);
    if (os_milliseconds() != now || stands_still())
        return true;
    store_relaxed(&last_visits, visits);
    return false;
}

size_t pace_allows(size_t visits)
{
    ASSERT(lock_rank_held(RANK_PURGE));
    size_t now = os_milliseconds();
    size_t passed = last_moment == 0 ? 0 : now - last_moment;
    bool rested = last_moment != 0 && rests(visits, now);
    if (has_slept(visits, now) || now - calm.moment >= REST_MILLISECONDS || !is_calm(visits, now))
        calm_from(now, visits, rested);
    size_t rate = rested ? BYTES_A_MILLISECOND_OF_REST : BYTES_A_MILLISECOND;
    size_t room = SAVED_MOST - saved;
    saved += passed < room / rate ? passed * rate : room;
    if (passed == 0 && stands_still())
        saved = SAVED_MOST;
    if (now != last_moment)
        store_relaxed(&last_clock, clock_now());
    store_relaxed(&last_moment, now);
    store_relaxed(&last_visits, visits);
    return saved;
}

void pace_spend(size_t bytes) { saved -= bytes < saved ? bytes : saved; }

#include "life/pace.h"

#include "base/assert.h"
#include "base/atomic.h"
#include "base/counters.h"
#include "os/lock.h"
#include "os/os.h"

/* A page that goes back and is faulted in again takes 1 to 4 us. */
#define BYTES_A_MILLISECOND (64 * KiB)

/* A program that lets so much time pass without a visit in most of its milliseconds is asleep, or
 * computes; what it has not used for so long may go faster. */
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

bool pace_moves(size_t visits)
{
    if (os_milliseconds() != load_relaxed(&last_moment) || stands_still())
        return true;
    store_relaxed(&last_visits, visits);
    return false;
}

bool pace_rests(size_t visits)
{
    size_t passed = os_milliseconds() - load_relaxed(&last_moment);
    return passed >= REST_MILLISECONDS && visits - load_relaxed(&last_visits) <= passed;
}

size_t pace_allows(size_t visits)
{
    ASSERT(lock_rank_held(RANK_PURGE));
    size_t now = os_milliseconds();
    size_t passed = last_moment == 0 ? 0 : now - last_moment;
    size_t rate = pace_rests(visits) ? BYTES_A_MILLISECOND_OF_REST : BYTES_A_MILLISECOND;
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

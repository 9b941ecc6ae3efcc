/* How fast the program's own calls give memory back, and when the program rests: then it may go
 * faster. Pure functions; life/pace.c reads the clocks.
 *
 * A program is asleep, computes, or is served by its stacks if no look comes for so long and it has
 * visited the slow path in few of these milliseconds; or if looks come, but it visits as little,
 * and frees less than the pace gives back. */
#ifndef HAKMEM_LEARN_RATE_H
#define HAKMEM_LEARN_RATE_H

#include "learn/laws.h"

/* ---- rest ---- */

static inline bool rest_is_long(size_t milliseconds) { return milliseconds >= LAW_REST_MS; }

/* Whether there were few visits to the slow path in this time: one in a millisecond. */
static inline bool rest_has_few(size_t visits, size_t milliseconds)
{
    return visits <= milliseconds;
}

/* Whether little was freed in this time. */
static inline bool rest_frees_little(size_t bytes, size_t milliseconds)
{
    return bytes <= milliseconds * LAW_PACE_MS;
}

/* The time that a calm is judged by. */
static inline size_t rest_judged(size_t milliseconds) { return larger(milliseconds, LAW_REST_MS); }

/* ---- the pace ---- */

/* Bytes that may go back, of those that might before so many milliseconds of work or rest passed. A
 * page that goes back and is faulted in again takes 1 to 4 us. */
static inline size_t rate_saved(size_t saved, size_t milliseconds, bool rested)
{
    size_t rate = rested ? LAW_LITTLE : LAW_PACE_MS;
    size_t room = SIZE_MAX - saved;
    return saved + (milliseconds < room / rate ? milliseconds * rate : room);
}

/* Whether so much was freed in one tick that the clock may stand still: else the program has huge
 * blocks. Without a clock there is no pace. */
static inline bool rate_doubts_clock(size_t freed)
{
    return freed > LAW_IN_A_ROW * (size_t)LAW_LOOK_MOST;
}

#endif

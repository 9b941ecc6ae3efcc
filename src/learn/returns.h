/* When memory that lies idle goes back to the kernel. Pure functions; life/purge.c counts.
 *
 * Held memory is in use, or idle. Idle memory goes back as soon as it is a large part of what is in
 * use, since the program may make no call any more; and by time, what lay idle for a while. What
 * went back and is wanted again was given back in vain, which costs 1 to 4 us for each page. The
 * more of it is unpaid, the less has to be left in use for memory to go back. Work pays it off, at
 * a rate that makes it a small part of the program's time. */
#ifndef HAKMEM_LEARN_RETURNS_H
#define HAKMEM_LEARN_RETURNS_H

#include "learn/laws.h"

/* Idle bytes from which on they go back at once: a part of what is in use, and not what comes and
 * goes in a small heap. */
#define RETURNS_LEAST (LAW_IDLE_PART * (size_t)LAW_LITTLE)
static inline size_t returns_from(size_t live)
{
    return larger(live / LAW_IDLE_PART, RETURNS_LEAST);
}

/* Bytes in use below which little is left of what was; of a small heap there never is. */
static inline size_t returns_low_from(size_t most)
{
    return most >= LAW_SMALL_PART * (size_t)LAW_LITTLE ? most / 2 : 0;
}
static inline bool returns_low(size_t live, size_t most) { return live < returns_low_from(most); }

/* Bytes in use below which idle memory goes back, where so much went back in vain: any, little of
 * the most that was in use, or hardly anything, since that may be the program's end. */
static inline size_t returns_below(size_t vain, size_t most)
{
    if (vain <= most / 2)
        return SIZE_MAX;
    if (vain <= most)
        return returns_low_from(most);
    return vain <= 2 * most + most / 2 ? returns_low_from(most) / LAW_IDLE_PART : 0;
}

/* Bytes to be freed until the next look at the time, and at how much is left. */
static inline size_t returns_look(size_t live) { return larger(live / LAW_TINY_PART, LAW_LITTLE); }

/* What may be counted as gone back in vain, so that it is paid in the end. */
static inline size_t returns_debt(size_t vain, size_t most) { return smaller(vain, 3 * most); }

/* Of what went back in vain, what still counts after so many milliseconds of processor time, and so
 * many in which no processor was at work for the program. */
static inline size_t returns_paid(size_t vain, size_t worked, size_t rested)
{
    size_t milliseconds = worked + rested / (LAW_TINY_PART * LAW_IDLE_PART);
    return milliseconds <= vain / LAW_WORK_MS ? vain - milliseconds * LAW_WORK_MS : 0;
}

/* Milliseconds between two looks of the scavenger, and at least between two ebbs of a thread. */
#define RETURNS_ROUND_MS (LAW_IN_A_ROW * LAW_HOLD_MS)

/* Whether a thread that took `most` bytes at once more than it gave back, and now `taken`, will
 * hardly want soon what its stacks hold. */
static inline bool returns_ebbs(ptrdiff_t taken, size_t most)
{
    return most >= LAW_SHARE_FIRST && taken <= (ptrdiff_t)(most / LAW_SMALL_PART);
}

#endif

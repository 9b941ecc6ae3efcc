/* How fast the program's own calls give memory back. What goes back costs a call of the kernel, and
 * a fault for each page that is wanted again: together that shall be at most about a twentieth of
 * the time that passes. What the pace does not allow now goes in later calls.
 *
 * With purge.c's lock. */
#ifndef HAKMEM_LIFE_PACE_H
#define HAKMEM_LIFE_PACE_H

#include "base/defs.h"

/* What was done so far: the calling thread's visits to the slow path; bytes that all threads freed,
 * by the allocation clock. Both without what compaction in the calling thread adds. */
struct work {
    size_t visits, freed;
};

/* Bytes that may go back now. */
size_t pace_allows(struct work done);

/* Whether time has passed since the last look. Needs no lock. */
bool pace_moves(struct work done);

/* Whether the program has rested since the last look. Needs no lock. */
bool pace_rests(struct work done);

/* So many bytes have gone back. */
void pace_spend(size_t bytes);

#endif

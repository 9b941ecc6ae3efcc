/* How often a block is sampled. Each byte that is allocated has the same chance, 1 / rate, so a
 * block of s bytes is sampled with p = 1 - exp(-s / rate), and stands for 1 / p blocks of its size.
 * Of blocks of one size the distance from one sample to the next is geometric; it may be drawn at
 * any time, since it does not depend on what came before. Thread safe but for `random`, which is
 * the caller's. */
#ifndef HAKMEM_PROFILE_RATE_H
#define HAKMEM_PROFILE_RATE_H

#include "base/defs.h"

/* At this rate every block is sampled, and stands for itself alone. */
#define RATE_EVERY 1u

/* Starts a generator that no other call starts in the same way. */
uint64_t rate_random(void);

/* Blocks of so many bytes up to the next sample, which counts; at least 1. More than GAP_MOST says
 * that of the next GAP_MOST none is a sample, and that it is to be drawn anew then: so another rate
 * is followed soon. */
#define GAP_MOST 4096u
uint32_t rate_gap(uint64_t *random, size_t bytes, size_t rate);

/* How many blocks a sample stands for. */
double rate_weight(size_t bytes, size_t rate);

/* The rate at this moment: where no profile is on, the one of guarded blocks. Else
 * policy.profile_rate, or a multiple of it while the program allocates so fast that there would be
 * more than policy.profile_samples samples a second. What was drawn at an earlier rate is right
 * with that one. */
size_t rate_now(void);

/* A sample with so many frames was taken, at this time in milliseconds; and time has passed,
 * perhaps without one. */
void rate_count(size_t now, size_t depth);
void rate_look(size_t now);

#endif

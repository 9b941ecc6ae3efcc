/* Where in the window superslabs lie: in slots of a superslab's length, the lowest free one first.
 * The caller holds the superslabs' lock. */
#ifndef HAKMEM_BACK_SLOTS_H
#define HAKMEM_BACK_SLOTS_H

#include "base/defs.h"

/* Chooses where the first superslab lies; `random` keeps that from being known. */
void slots_start(uint64_t random);

/* Maps `length` bytes, at most a superslab's, in the lowest free slot; null if that fails. */
char *slot_map(size_t length);

/* What an attacker can't guess, in a hardened heap. */
uint64_t slots_random(void);

/* The slot at base is free again; an address outside the window is ignored. */
void slot_unmapped(const char *base);

#endif

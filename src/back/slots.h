/* Where superslabs lie: in slots of a superslab's length, in the window, the lowest free one first;
 * in a hardened heap anywhere in a wider range, since there no free takes the fast path. The caller
 * holds the superslabs' lock. */
#ifndef HAKMEM_BACK_SLOTS_H
#define HAKMEM_BACK_SLOTS_H

#include "base/defs.h"

/* Chooses where the first superslab lies; `random` keeps that from being known. */
void slots_start(uint64_t random);

/* Maps `length` bytes, at most a superslab's, in a free slot; null if that fails. */
char *slot_map(size_t length);

/* Whether p is in a slot, where nothing but superslabs lies. */
bool slots_hold(const void *p);

/* What an attacker can't guess, in a hardened heap. */
uint64_t slots_random(void);

/* The slot at base is free again; an address outside of all slots is ignored. */
void slot_unmapped(const char *base);

#endif

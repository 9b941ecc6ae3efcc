/* The proof that a block is free already, for a free that found the seal (front/cache.h). A program
 * may have copied the seal from memory that it never wrote, so a block counts as free only if it is
 * found among the free ones. */
#ifndef HAKMEM_FRONT_PROOF_H
#define HAKMEM_FRONT_PROOF_H

#include "base/defs.h"

/* Whether the block of the class at p is free: by its slab's bits, in the transfer cache, or in a
 * stack of any thread. The caller holds no lock. Takes the lock of each cache in turn; a program
 * without errors is here by chance only. */
bool block_is_free(unsigned cls, const void *p);

#endif

/* A heap profile is turned on and off. */
#ifndef HAKMEM_LIFE_PROFILING_H
#define HAKMEM_LIFE_PROFILING_H

#include "base/defs.h"

/* From now on blocks are sampled, or no more; those that were stay watched. False where that can't
 * be: there is no memory, the kernel has larger pages, or a fork holds the heap. The caller holds
 * no lock. */
bool profile_switch(bool on);

/* Turns it on at the process's start; says so where that can't be. */
void profile_begin(void);

#endif

/* Which thread a cache belongs to. */
#ifndef HAKMEM_LOOK_THREADS_H
#define HAKMEM_LOOK_THREADS_H

#include "sheet/heap.h"

/* Fills in the threads of living caches, as far as the kernel tells where threads lie. */
void threads_name(struct target *t, int pid, struct heap *heap);

#endif

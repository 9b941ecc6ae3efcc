/* Brings blocks of one slab together, where they come in any order: a slab that is found once for
 * many of them costs a fifth of one that is found for each. */
#ifndef HAKMEM_HEAP_GROUP_H
#define HAKMEM_HEAP_GROUP_H

#include "base/defs.h"

/* Too few gain nothing. */
#define GROUP_LEAST 32

/* Changes the order of n blocks, at least GROUP_LEAST, unless neighbours mostly share a slice. */
void group_by_slice(void **blocks, size_t n);

#endif

/* Sorts blocks that come in any order by slab: looking up a slab once for many blocks costs a fifth
 * of looking it up for each. */
#ifndef HAKMEM_HEAP_GROUP_H
#define HAKMEM_HEAP_GROUP_H

#include "base/defs.h"

/* Changes the order of n blocks, at least LAW_GROUP_LEAST, unless neighbours mostly share a slice.
 */
void group_by_slice(void **blocks, size_t n);

#endif

/* Returns the pages that are free inside slabs in use to the kernel. */
#ifndef HAKMEM_HEAP_PAGE_PURGE_H
#define HAKMEM_HEAP_PAGE_PURGE_H

#include "base/defs.h"

/* Gives back to the kernel what pages are free in slabs that became sparse before the allocation
 * clock said `before`, those that did so first first; `*most` slabs are looked at, less what is
 * left in it: more than 0 when there were no more. Those that are wanted again while the clock says
 * at most `soon_until` count as having gone too early. Returns bytes. One thread at a time. */
size_t shards_purge(size_t before, size_t soon_until, size_t *most);

/* Whether there are slabs that may have such pages. */
bool shards_sparse(void);

#endif

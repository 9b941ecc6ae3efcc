/* Pages that are free inside slabs in use: which they are, and how they go back to the kernel. */
#ifndef HAKMEM_HEAP_PAGE_PURGE_H
#define HAKMEM_HEAP_PAGE_PURGE_H

#include "base/defs.h"

struct slab;

/* The pages, as a set, of which no block that is taken has a byte and which may be resident. */
uint64_t slab_free_pages(const struct slab *slab);

/* Gives back to the kernel what pages are free in slabs that became sparse before the allocation
 * clock said `before`, those that did so first first. Looks at so many slabs, and stops when
 * so many bytes have gone; what is left of both stays in `room`: slabs and bytes when there were no
 * more. Returns bytes. One thread at a time. */
#define STEP_SLABS 256 /* of one step: enough for what one call may give back */
struct purge_room {
    size_t slabs, bytes;
};
size_t shards_purge(size_t before, struct purge_room *room);

/* Has all slabs looked at that have so many free blocks that a page may be free, also those that
 * are too full for that to be likely. Walks through all of them. */
void shards_sparse_anew(void);

/* Whether there are slabs that may have such pages. */
bool shards_sparse(void);

#endif

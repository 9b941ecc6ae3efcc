/* Memory for the allocator's own structures: in regions of its own between guard pages, never
 * beside a block of the program. Regions are never unmapped, so that a descriptor that is looked
 * at a moment too late is stale, not a fault. Thread safe. */
#ifndef HAKMEM_BACK_META_H
#define HAKMEM_BACK_META_H

#include "base/defs.h"

/* Zeroed or not as the caller finds it after meta_give; new memory is zero. At a multiple of a
 * cache line. At most META_MOST bytes. Null without memory. */
#define META_MOST (40 * KiB)
void *meta_take(size_t bytes);

/* `bytes` is what was asked. */
void meta_give(void *p, size_t bytes);

/* Bytes of regions taken from the kernel, for statistics. */
size_t meta_mapped(void);

void meta_fork_lock(void);
void meta_fork_unlock(void);

#endif

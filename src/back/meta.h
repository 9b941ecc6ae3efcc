/* Memory for the allocator's own structures: in separate regions between guard pages, never next to
 * a block of the program. Regions are never unmapped, so a thread that reads a descriptor a moment
 * too late reads old data, and does not fault. Thread safe. */
#ifndef HAKMEM_BACK_META_H
#define HAKMEM_BACK_META_H

#include "base/defs.h"

/* Zeroed or not as the caller finds it after meta_give; new memory is zero. At a multiple of a
 * cache line. At most META_MOST bytes. Null without memory. */
#define META_MOST (40 * KiB)
void *meta_take(size_t bytes);

/* As meta_take, at a multiple of the page size, for whole pages that are never given back. */
void *meta_take_pages(size_t bytes);

/* `bytes` is what was requested. */
void meta_give(void *p, size_t bytes);

/* Bytes of regions taken from the kernel, for statistics. */
size_t meta_mapped(void);

/* Bytes that a piece of `bytes` takes up. */
size_t meta_size(size_t bytes);

/* Whether `bytes` from p on lie in a region. */
bool meta_holds(const void *p, size_t bytes);

/* What regions consist of, apart from the pieces in use. */
struct meta_parts {
    size_t free;   /* bytes of pieces given back; SIZE_MAX where their lists are broken */
    size_t unused; /* bytes never handed out, and the regions' heads */
    size_t guards; /* bytes of pages that may not be touched; not in meta_mapped */
};
struct meta_parts meta_parts(void);

#endif

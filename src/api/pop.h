/* What fast bodies have in common: a block from the calling thread's stacks. */
#ifndef HAKMEM_API_POP_H
#define HAKMEM_API_POP_H

#include "front/cache.h"

/* A block of n bytes; false where the slow path is to serve. */
FAST bool malloc_pop(size_t n, void **p)
{
    if (likely(n <= CLASS_SMALL))
        return likely(cache_pop(cache_current(), class_small_bin_offset(n), p));
    return likely(n <= CLASS_MOST) &&
           likely(cache_pop(cache_current(), class_above_bin_offset(n), p));
}

/* False for n = 0, too. */
FAST bool aligned_pop(size_t align, size_t n, void **p)
{
    size_t least = round_up(n, align);
    return likely((n | align) <= CLASS_MOST) && likely(least - 1 < CLASS_MOST) &&
           likely(cache_pop(cache_current(), class_bin_offset(least), p));
}

#endif

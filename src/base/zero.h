/* Whether memory holds zeroes. */
#ifndef HAKMEM_BASE_ZERO_H
#define HAKMEM_BASE_ZERO_H

#include "base/defs.h"

/* `size` is a multiple of 16, as p is. */
static inline bool is_zero(const void *p, size_t size)
{
    typedef uint64_t pair __attribute__((vector_size(16), may_alias));
    const pair *at = p, *end = at + size / sizeof *at;
    pair found = {0, 0};
    for (; at + 4 <= end; at += 4)
        found |= (at[0] | at[1]) | (at[2] | at[3]);
    for (; at < end; at++)
        found |= *at;
    return (found[0] | found[1]) == 0;
}

#endif

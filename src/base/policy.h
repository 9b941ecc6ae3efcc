/* The numbers that the rest reads. Plain data: only policy/ will write it, on slow paths only.
 * Every figure is a bound or a start value; sizes in bytes. */
#ifndef HAKMEM_BASE_POLICY_H
#define HAKMEM_BASE_POLICY_H

#include "base/defs.h"

struct policy {
    size_t stack_bytes;         /* blocks that one class's stack may hold, once it has grown */
    size_t stack_least;         /* the same in blocks, where that is more */
    size_t stack_foreign_bytes; /* the same while what overflows belongs to other shards */
    size_t stack_blocks;        /* blocks at most, which bounds the pointers */
    size_t thread_bytes;        /* all stacks of a thread together */
    size_t transfer_bytes;      /* blocks that one class's transfer cache may hold */
    size_t transfer_blocks;     /* the same in blocks */
    size_t retain_slices;       /* free slices that keep their pages */
    size_t big_cache_bytes;     /* free huge mappings kept for reuse */
};

extern struct policy policy HIDDEN;

#endif

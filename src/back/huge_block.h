/* The descriptor of a huge block (huge.h), in use or free. */
#ifndef HAKMEM_BACK_HUGE_BLOCK_H
#define HAKMEM_BACK_HUGE_BLOCK_H

#include "base/defs.h"
#include "base/list.h"

struct huge {
    struct list node; /* among the dirty ones; lock: dirty */
    char *base;       /* the mapping's start, any page; whoever holds the block or the lock */
    size_t length;    /* bytes mapped, whole slices */
    size_t usable;    /* bytes the program may use, whole pages */
    size_t before;    /* bytes of its own mapping in front, inaccessible; 0: it has no guards */
    size_t mapped;    /* bytes of that mapping */
    size_t marked;    /* bytes that nobody can touch by a mark of the kernel; else by the mapping */
    uint8_t maker;    /* enum maker; atomic, whoever holds the block */
};

#endif

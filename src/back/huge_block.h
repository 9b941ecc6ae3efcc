/* The descriptor of a huge block (huge.h), in use or free. */
#ifndef HAKMEM_BACK_HUGE_BLOCK_H
#define HAKMEM_BACK_HUGE_BLOCK_H

#include "base/defs.h"
#include "base/list.h"

struct huge {
    struct list node; /* among the dirty or the forbidden ones; lock: dirty */
    char *base;       /* the mapping's start, any page; whoever holds the block or the lock */
    size_t length;    /* bytes mapped, whole slices */
    size_t usable;    /* bytes the program may use, whole pages */
    size_t before;    /* bytes of its own mapping in front, inaccessible; 0: it has no guards */
    size_t mapped;    /* bytes of that mapping */
    uint8_t maker;    /* enum maker; atomic, whoever holds the block */
    bool marks;       /* what nobody can touch of its length is so by marks of the kernel
                         (os_guard_runs); else by the mapping */
};

#endif

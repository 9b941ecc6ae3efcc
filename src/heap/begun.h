#ifndef HAKMEM_HEAP_BEGUN_H
#define HAKMEM_HEAP_BEGUN_H

#include "base/defs.h"

/* A class's slabs in a shard that have free blocks and taken ones, together. */
struct begun {
    size_t blocks, free;
    size_t absent;      /* pages of theirs that were given back and not handed out since */
    bool compacts;      /* atomic; the rest changes with thin slabs */
    size_t compactions; /* times it began to */
    size_t compacted;   /* bytes of blocks that went back to thin slabs, ever */
    size_t before;      /* of these, when it began last */
    size_t regained;    /* bytes of thin slabs whose pages went back, or that became empty, ever */
};

#endif

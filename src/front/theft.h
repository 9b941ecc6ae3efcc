/* Takes the blocks in a sleeping thread's stacks, without its help, and at no cost to it while it
 * runs. */
#ifndef HAKMEM_FRONT_THEFT_H
#define HAKMEM_FRONT_THEFT_H

#include "base/defs.h"
#include "base/misuse.h"

struct theft {
    size_t bytes;         /* of blocks taken */
    size_t busy;          /* caches passed over since their threads were at work */
    struct finding found; /* the first wrong block found among them */
};

/* Frees what other threads' stacks hold: of threads that took no slow path since the last call, or
 * of `all`. A cache from which everything could be taken goes to sleep, and its arrays' pages go
 * back to the kernel. One thread at a time. */
struct theft caches_steal(bool all);

#endif

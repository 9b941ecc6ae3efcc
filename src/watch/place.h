/* What lies at an address, for whoever has to describe one. Any address may be asked about: it is
 * never dereferenced. No lock is waited for, so a report may ask in any state of the heap; what
 * other threads change meanwhile may be seen before or after. */
#ifndef HAKMEM_WATCH_PLACE_H
#define HAKMEM_WATCH_PLACE_H

#include "base/defs.h"

enum place_kind {
    PLACE_ELSEWHERE, /* nothing of hakmem's */
    PLACE_VACANT,    /* where hakmem keeps blocks, but none is there now */
    PLACE_KEPT,      /* memory of a freed huge block, kept for the next one */
    PLACE_SLAB_END,  /* in a slab, behind its last block */
    PLACE_CLASS,     /* in a block of a class, free or not */
    PLACE_LARGE,     /* in a large block */
};

struct place {
    enum place_kind kind;
    uintptr_t start; /* of the block */
    size_t size;     /* bytes of the block that the program may use; of its class, in a slab */
    uintptr_t slab;  /* where the slab begins, if the block is in one of a class */
};

struct place place_of(const void *p);

#endif

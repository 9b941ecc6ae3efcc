/* What lies at an address, for reports. Any address may be passed: it is never dereferenced. No
 * function waits for a lock, so a report may be made in any state of the heap; changes that other
 * threads make meanwhile may or may not be seen. */
#ifndef HAKMEM_REPORT_ADDRESS_H
#define HAKMEM_REPORT_ADDRESS_H

#include "base/defs.h"
#include "base/misuse.h"

enum address_kind {
    ADDRESS_ELSEWHERE, /* nothing of hakmem's */
    ADDRESS_VACANT,    /* where hakmem keeps blocks, but none is there now */
    ADDRESS_DIRTY,     /* memory of a freed block above 32 KiB that is kept for the next one */
    ADDRESS_SLAB_END,  /* in a slab, behind its last block */
    ADDRESS_CLASS,     /* in a block of a class, free or not */
    ADDRESS_LARGE,     /* in a large block */
    ADDRESS_GUARDED,   /* in or near a guarded block */
};

struct address {
    enum address_kind kind;
    uintptr_t start; /* of the block */
    size_t size;     /* bytes of the block that the program may use; of its class, in a slab */
    uintptr_t slab;  /* where the slab begins, if the block is in one of a class */
};

struct address address_describe(const void *p);

/* ---- makers ----
 *
 * Which functions allocated a block, with check_functions: a note in its canary, in the descriptor
 * of a huge block, or with what is noted of a guarded one. Thread safe, without a lock. */

/* For p, any address. MAKER_UNKNOWN where no block in use begins there, or nothing is noted of it:
 * blocks that are served while a fork holds the heap. */
enum maker maker_of(const void *p);

/* Notes it of p, a block in use that the caller holds. */
void maker_note(void *p, enum maker maker);

#endif

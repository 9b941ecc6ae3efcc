/* Reports of misuse, and what lies at an address. */
#ifndef HAKMEM_REPORT_REPORT_H
#define HAKMEM_REPORT_REPORT_H

#include "base/defs.h"
#include "base/misuse.h"

/* ---- an address ----
 *
 * Any may be passed: it is never dereferenced. No function waits for a lock, so a report may be
 * made in any state of the heap; changes that other threads make meanwhile may or may not be seen.
 */

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

/* ---- a report ----
 *
 * A few lines on standard error that say what, where, which thread and what to do. Then the program
 * ends, or continues if the policy says so. Where it is known who allocated the block, and who
 * freed it, their stacks follow.
 *
 * Async-signal-safe, never through malloc, preserves errno. The caller holds no lock. One thread
 * reports at a time. */

struct wrong_call {
    const char *function; /* that the program called with p, as "free" */
    enum misuse what;
    const void *p;
    const void *caller; /* the return address of that call; null when it is not known */
    bool late;          /* found by another call, after the wrong one */
    bool fault;         /* no call, but an access: `function` says which, `caller` what made it */
    size_t size;        /* the size that the program said, in MISUSE_SIZE */
    enum maker maker;   /* the report's own, in MISUSE_FUNCTION */
};

/* Reports, and ends the program; returns where policy.abort_on_misuse is 0, and from a fault. Then
 * the caller does nothing with p. */
void report_misuse(const struct wrong_call *call);

/* Reports a wrong block that was found when freed blocks left a stack, if there is one. `caller` is
 * the return address of the call of hakmem, or null. */
void report_late(struct finding found, const void *caller);

#endif

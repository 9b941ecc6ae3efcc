/* Reports of misuse: a few lines on standard error that say what, where, which thread and what to
 * do. Then the program ends, or continues if the policy says so.
 *
 * Where it is known who allocated the block, and who freed it, their stacks follow.
 *
 * Async-signal-safe, never through malloc, preserves errno. The caller holds no lock. One thread
 * reports at a time. */
#ifndef HAKMEM_REPORT_REPORT_H
#define HAKMEM_REPORT_REPORT_H

#include "base/defs.h"
#include "base/misuse.h"

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

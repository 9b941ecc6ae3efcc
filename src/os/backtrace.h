/* Who called: the calling thread's frames. Never through malloc.
 *
 * The compiler's unwinder reads them. libhakmem.so has it inside; with the static library it is
 * there when the program brings it, as every C++ program does. Where it stops at code without
 * unwind information, which a program made while it runs, or which was compiled without, the walk
 * goes on where that is possible. */
#ifndef HAKMEM_OS_BACKTRACE_H
#define HAKMEM_OS_BACKTRACE_H

#include "base/defs.h"

/* Whether this build has an unwinder. */
bool backtrace_possible(void);

/* The constructors of libraries run: from now on frames can be taken. */
void backtrace_start(void);

struct registers;

/* The calling thread's frames, at most so many. */
struct frames {
    const void *caller; /* an address in the first frame wanted, or null */
    unsigned most;
    unsigned count;          /* what is there when the stack is damaged */
    uintptr_t *frames;       /* innermost first: where the call is, not where it returns */
    uintptr_t *stacks;       /* the stack's end at each call, or null */
    uintptr_t present_until; /* memory is known to be there up to this address, a multiple of the
                                page size, and beyond it only where it is asked for (os_readable);
                                0: nothing is asked, and the walk ends with code that has no unwind
                                information */
    struct registers *at;    /* of the last frame, where they are noted, or null */
    /* After each frame: whether the caller knows the rest, and has added it. Or null. */
    bool (*knows_rest)(struct frames *trace);
    void *with; /* what that needs */
    bool whole; /* it knew */
};

/* Fills what is below `caller`; where that is in no frame, all but hakmem's own (which only the
 * shared library can tell). Faults on a damaged stack, unless `present_until` says what is there.
 */
void backtrace_fill(struct frames *trace);

/* The same at any moment: none before the program has started, or where a lock would be waited for.
 * `present_until` is found out. */
void backtrace_fill_cheaply(struct frames *trace);

#endif

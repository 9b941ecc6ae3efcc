/* Who called: the calling thread's frames, and their names. Never through malloc.
 *
 * The compiler's unwinder reads the frames. libhakmem.so has it inside; with the static library it
 * is there when the program brings it, as every C++ program does. Names are those that a module
 * exports; the offset in the module is for addr2line. */
#ifndef HAKMEM_REPORT_BACKTRACE_H
#define HAKMEM_REPORT_BACKTRACE_H

#include "base/defs.h"
#include "base/text.h"

#define BACKTRACE_MOST 32

struct registers;

struct backtrace {
    const void *caller;               /* an address in the first frame wanted, or null */
    unsigned count;                   /* frames; what is there when the stack is damaged */
    uintptr_t frames[BACKTRACE_MOST]; /* innermost first: where the call is, not where it returns */
};

/* Whether this build has an unwinder. */
bool backtrace_possible(void);

/* Whether frames can be taken at any moment: the program has started, and no lock is waited for. */
bool backtrace_cheap(void);

/* The constructors of libraries run: from now on frames can be taken. */
void backtrace_start(void);

/* The calling thread's frames, at most so many; `caller` as in struct backtrace. */
struct frames {
    const void *caller;
    unsigned most, count;
    uintptr_t *frames;
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
void backtrace_fill(struct frames *trace);

/* Fills what is below `caller`; where that is in no frame, all but hakmem's own (which only the
 * shared library can tell). Faults on a damaged stack. */
void backtrace_take(struct backtrace *trace);

/* Adds " name+0xOFFSET (module+0xOFFSET)" for an address of code or static data in a loaded module,
 * as far as it is known; false, and nothing, where there is no module. */
bool backtrace_add_module(struct text *text, uintptr_t address);

/* The address of a function that a loaded module exports, also where the loader lets only other
 * modules see it (RTLD_LOCAL); null if there is none. Of several, that of the module loaded first.
 */
void *module_function(const char *name);

#endif

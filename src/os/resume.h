/* Walks a stack on where the unwinder stops: at code without unwind information, which a program
 * made while it runs, or which was compiled without.
 *
 * Where it is certain how such code returns, as it only gives up its frame, that is how it is
 * passed: the trampolines through which Python calls its functions for perf do so. Else by the
 * frame pointer, if what it points to may be a frame: it lies further out on the stack, and has the
 * address after a call. */
#ifndef HAKMEM_OS_RESUME_H
#define HAKMEM_OS_RESUME_H

#include <link.h>
#include <unwind.h>

#include "base/defs.h"

/* Only with _dl_find_object does a sample have a stack, and only in the shared library. */
#if defined(DLFO_EH_SEGMENT_TYPE) && defined(HAKMEM_SHARED) && defined(__x86_64__)
#define CAN_RESUME 1
#else
#define CAN_RESUME 0
#endif

/* What a frame's code goes on with. */
struct registers {
    uintptr_t ip, sp;
    uintptr_t bx, bp, r12, r13, r14, r15; /* that a call leaves as they were */
};

#if CAN_RESUME

/* Whether there is code without unwind information. */
bool resume_needed(uintptr_t code);

/* Those of the frame that the unwinder is at. */
void resume_note(struct registers *at, struct _Unwind_Context *context);

/* To the caller's; false where that is not certain. There is stack memory above at->sp; whether
 * there is up to another place `in_reach` says. */
bool resume_step(struct registers *at, bool (*in_reach)(void *to, uintptr_t stack), void *to);

/* _Unwind_Backtrace with the frame of these registers as the second; the first is this function. */
_Unwind_Reason_Code resume_walk(const struct registers *at, _Unwind_Trace_Fn each, void *argument);

#endif
#endif

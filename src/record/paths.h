/* Call paths: numbers for the call stacks that allocate. Reading a stack takes microseconds, so
 * that is done once for a path, and now and then again. Else some of its addresses and how much
 * stack is in use tell which path it is: a function takes as much stack for each of its calls,
 * unless it takes what it wants (alloca), and how much was seen when its stack was read.
 *
 * Thread safe, without a lock. At most 2^17 - 1 paths have a number. So that they suffice, later
 * paths lack calls (struct stack_kept); those for which there is none all the same have PATH_NONE.
 * Two paths that can't be told apart in this way count as one of them, until one is read again. */
#ifndef HAKMEM_RECORD_PATHS_H
#define HAKMEM_RECORD_PATHS_H

#include "record/ring.h"

/* Where a function of ours returns to, and the stack's end there. */
struct caller {
    const void *code;
    uintptr_t stack;
};
#define CALLER ((struct caller){RETURN_ADDRESS, (uintptr_t)__builtin_dwarf_cfa()})

#define PATH_NONE 0u /* of an allocation whose path is not known */

/* Makes the tables; false without memory. In the child of a fork: none is known. */
bool paths_start(void);
void paths_forget(void);

/* Modules were closed: what was learned of stacks may be wrong where others come to lie. The paths
 * keep their numbers. */
void paths_read_anew(void);

/* The number of the path; false where its stack is to be read. */
bool path_known(struct tape *tape, struct caller from, unsigned *path);

/* Whether this time it is to be read by unwind tables, so that what was learned wrong is found. */
bool path_to_check(const struct tape *tape);

/* More calls of a stack are not read. After those of a path that has no more, PATH_CUT is written.
 */
#define FRAMES_READ 64
#define PATH_CUT ((uintptr_t)0)

/* Of a stack that was read, innermost first: where each call is, and the stack's end there. */
struct stack_read {
    unsigned count, unwound; /* calls, and those of them that were not known from before */
    const uintptr_t *frames, *stacks;
    uint64_t modules; /* tells it apart from one of calls at these addresses in other modules */
};

/* Reads the stack by what was seen of its functions before, in a small part of the time that
 * reading it by unwind tables takes. False where that does not lead to its end. At most `most` of
 * each. */
bool stack_walk(const struct tape *tape, struct caller from, uintptr_t *frames, uintptr_t *stacks,
                unsigned most, unsigned *count);

/* What of a stack is its path: so many of the innermost calls and of the outermost. Not `whole`: it
 * has others between, or further out. */
struct stack_kept {
    unsigned inner, outer;
    bool whole;
};

/* Learns from it. The number of the path, and whether that is new: then it is to be written. */
unsigned path_enter(struct tape *tape, struct caller from, const struct stack_read *stack,
                    struct stack_kept *kept, bool *is_new);

/* The number of a path with what else tells it apart, here the functions of scripts; `path` where
 * there is no number for it. */
unsigned path_with(unsigned path, uint64_t more, bool *is_new);

/* Of what paths_forget forgot last; never 0. */
unsigned paths_generation(void);

#endif

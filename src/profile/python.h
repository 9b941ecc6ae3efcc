/* The frames of Python functions that are below a sampled allocation: CPython's, without any option
 * of it. CPython keeps them apart from the processor's stack, and one call of its evaluator may run
 * several. A thread's frames are found whether it holds the GIL or not.
 *
 * Nothing of Python's is called that takes a lock or allocates, and each address that is followed
 * is one that can be read: another Python than was expected, or a damaged one, gives no frames. */
#ifndef HAKMEM_PROFILE_PYTHON_H
#define HAKMEM_PROFILE_PYTHON_H

#include "base/defs.h"

/* A native stack, innermost first: where each call is, and the stack's end there. */
struct native_stack {
    unsigned count;
    const uintptr_t *frames, *ends;
};

struct python_frame {
    uintptr_t code;   /* the object */
    uintptr_t anchor; /* on the processor's stack, in the evaluator's frame; 0: unknown */
    uint32_t at;      /* bytes from the code's begin */
};

#define PYTHON_FRAMES_MOST 64
struct python_stack {
    unsigned count;
    struct python_frame frames[PYTHON_FRAMES_MOST]; /* innermost first */
};

/* The calling thread's, at most so many; none where `native` has no frame of an interpreter. */
void python_read(struct python_stack *stack, const struct native_stack *native);

/* Looks for an interpreter in a native stack, where none was found yet. */
void python_look(const struct native_stack *native);

/* Whether the program is a Python interpreter, as was seen in some stack. Then the frames can be
 * read without a native stack. */
bool python_is_program(void);
void python_read_program(struct python_stack *stack);

/* A number that tells the functions and lines; without a lock. */
uint64_t python_hash(const struct python_stack *stack);

/* Whether the program is an interpreter that has begun to end: then it frees all that it can. */
bool python_ends(void);

/* Puts them where the evaluator's frames are, as addresses of script lines (noted.h, whose caller
 * this is): the stack as it is to be shown, at most `most`, to `frames`, which native.frames
 * may not be; how many it has. */
unsigned python_mix(const struct python_stack *stack, const struct native_stack *native,
                    uintptr_t *frames, unsigned most);

#endif

/* What the compiler can't be told in C. */
#ifndef HAKMEM_BASE_ASM_H
#define HAKMEM_BASE_ASM_H

#include "base/defs.h"

/* The compiler forgets what it knows of x. It then addresses memory by x where it stands, instead
 * of computing an address beforehand that it uses twice; each saves an instruction on a fast path.
 */
#define FORGET(x) __asm__("" : "+r"(x))

/* Moves a pointer in memory by `words` words, up or down; its value was `from`. In one instruction
 * where the architecture has it. The memory is the calling thread's. */
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
#define MOVE_POINTER(place, from, words)                                                           \
    __asm__("addq %1, %0" : "+m"(place) : "i"((words) * 8) : "cc")
#else
#define MOVE_POINTER(place, from, words) ((place) = (from) + (words))
#endif

#endif

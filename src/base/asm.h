/* What the compiler can't be told in C. */
#ifndef HAKMEM_BASE_ASM_H
#define HAKMEM_BASE_ASM_H

#include "base/defs.h"

/* gcc says so by a macro, clang by a feature. */
#if defined(__SANITIZE_THREAD__)
#define UNDER_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define UNDER_TSAN 1
#endif
#endif
#ifndef UNDER_TSAN
#define UNDER_TSAN 0
#endif

/* The compiler forgets what it knows of x, so that it has x in a register and addresses memory by
 * it as written. On the fast paths that decides more than it seems: a stack's top is stored by free
 * and loaded by the next malloc, and processors forward such a value at once when the address is a
 * register and a constant, but not when an index is in it (9 cycles a pair against 14). */
#define FORGET(x) __asm__("" : "+r"(x))

/* The same in the register that returns a result, so that it need not be moved there. */
#if defined(__x86_64__)
#define FORGET_RESULT(x) __asm__("" : "+a"(x))
#else
#define FORGET_RESULT(x) FORGET(x)
#endif

/* Whoever sees a stack's new top, as a fork's child may at any instruction, sees the slot below it
 * written. */
#define SLOT_BEFORE_TOP() __atomic_signal_fence(__ATOMIC_RELEASE)

/* Moves a pointer in memory by one word, up or down, where its value is needed no more: in one
 * instruction where the architecture has it. The memory is the calling thread's own. */
#if defined(__x86_64__) && !UNDER_TSAN
#define STEP_UP(place) __asm__ volatile("addq $8, %0" : "+m"(place) : : "cc")
#define STEP_DOWN(place) __asm__ volatile("subq $8, %0" : "+m"(place) : : "cc")
#else
#define STEP_UP(place) ((place)++)
#define STEP_DOWN(place) ((place)--)
#endif

#endif

/* What of the machine C can't express: instructions whose order or form the compiler must not
 * choose, and words that two threads may touch without a common lock. */
#ifndef HAKMEM_BASE_ATOMIC_H
#define HAKMEM_BASE_ATOMIC_H

#include "base/defs.h"

/* gcc says so by a macro, clang by a feature. */
#if defined(__has_feature)
#define COMPILED_WITH(feature) __has_feature(feature)
#else
#define COMPILED_WITH(feature) 0
#endif
#if defined(__SANITIZE_THREAD__) || COMPILED_WITH(thread_sanitizer)
#define UNDER_TSAN 1
#else
#define UNDER_TSAN 0
#endif
#if UNDER_TSAN || defined(__SANITIZE_ADDRESS__) || COMPILED_WITH(address_sanitizer)
#define UNDER_SANITIZER 1
#else
#define UNDER_SANITIZER 0
#endif

/* The compiler forgets what it knows of x, so that it has x in a register and addresses memory by
 * it as written. On the fast paths that decides more than it seems: a stack's top is stored by free
 * and loaded by the next malloc, and processors forward such a value at once when the address is a
 * register and a constant, but not when an index is in it (9 cycles a pair against 14). */
#define FORGET(x) __asm__("" : "+r"(x))

/* FORGET with x in the register that returns a result, so that x need not be moved there. */
#if defined(__x86_64__)
#define FORGET_RESULT(x) __asm__("" : "+a"(x))
#else
#define FORGET_RESULT(x) FORGET(x)
#endif

/* Whether comparing with a large number costs an instruction less where it is read from memory than
 * where it is in the code. */
#if defined(__x86_64__)
#define NUMBERS_IN_MEMORY true
#else
#define NUMBERS_IN_MEMORY false
#endif

/* Moves a pointer in memory by one word, up or down: in one instruction where the architecture has
 * it. The memory is the calling thread's own. The compiler moves no other access across it, so
 * a thread that stops this one between two instructions sees everything before it and nothing
 * after it. */
#if defined(__x86_64__) && !UNDER_TSAN
#define STEP_UP(place) __asm__ volatile("addq $8, %0" : "+m"(place) : : "cc", "memory")
#define STEP_DOWN(place) __asm__ volatile("subq $8, %0" : "+m"(place) : : "cc", "memory")
#else
/* Upwards the new top is seen with the slot below it written, as by a fork's child. (The rest is
 * for ThreadSanitizer.) */
#define STEP_DOWN_ORDER (UNDER_TSAN ? __ATOMIC_RELEASE : __ATOMIC_RELAXED)
#define STEP(place, words, order)                                                                 \
    do {                                                                                          \
        __atomic_signal_fence(__ATOMIC_SEQ_CST);                                                  \
        __atomic_store_n(&(place), __atomic_load_n(&(place), __ATOMIC_RELAXED) + (words), order); \
        __atomic_signal_fence(__ATOMIC_SEQ_CST);                                                  \
    } while (0)
#define STEP_UP(place) STEP(place, 1, __ATOMIC_RELEASE)
#define STEP_DOWN(place) STEP(place, -1, STEP_DOWN_ORDER)
#endif

/* Whether a call stores where it returns to on the stack, next to the caller's end of it. */
#if defined(__x86_64__)
#define RETURNS_ARE_ON_STACK true
#else
#define RETURNS_ARE_ON_STACK false
#endif

/* Whether other processors see one's stores in their order. */
#if defined(__x86_64__)
#define STORES_ARE_SEEN_IN_ORDER true
#else
#define STORES_ARE_SEEN_IN_ORDER false
#endif

/* A clock that is read in few cycles and that all processors have in common, and how many of its
 * lowest bits may be left out for units of 8 ns or more. */
#if defined(__x86_64__)
#define CLOCK_TICKS() __builtin_ia32_rdtsc()
#define CLOCK_SHIFT() 5u
#elif defined(__aarch64__)
#define CLOCK_READ(name)                                               \
    __extension__({                                                    \
        unsigned long value_;                                          \
        __asm__ volatile("mrs %0, " name : "=r"(value_) : : "memory"); \
        value_;                                                        \
    })
#define CLOCK_TICKS() CLOCK_READ("cntvct_el0")
#define CLOCK_SHIFT() (CLOCK_READ("cntfrq_el0") > 125000000 ? 3u : 0u)
#endif

/* ---- shared words ----
 *
 * Everything that two threads may touch without a common lock goes through these functions, so that
 * the code shows, where it is used, how it is ordered. */

#define load_relaxed(p) __atomic_load_n((p), __ATOMIC_RELAXED)
#define load_acquire(p) __atomic_load_n((p), __ATOMIC_ACQUIRE)
#define store_relaxed(p, v) __atomic_store_n((p), (v), __ATOMIC_RELAXED)
#define store_release(p, v) __atomic_store_n((p), (v), __ATOMIC_RELEASE)
#define add_relaxed(p, v) __atomic_add_fetch((p), (v), __ATOMIC_RELAXED)
#define sub_relaxed(p, v) __atomic_sub_fetch((p), (v), __ATOMIC_RELAXED)

/* Words of the calling thread's own that another may look at, or change by exchange: plain
 * accesses, which the compiler may make part of another instruction, and which processors make
 * whole. ThreadSanitizer must be told. */
#if UNDER_TSAN
#define load_own(p) load_relaxed(p)
#define store_own(p, v) store_relaxed(p, v)
#else
#define load_own(p) (*(p))
#define store_own(p, v) ((void)(*(p) = (v)))
#endif

/* ---- probes ----
 *
 * Static probes for tracers (bpftrace, perf, gdb, SystemTap): PROBE1("provider", "name", a) and
 * PROBE3 with three arguments. A probe is one instruction that does nothing, and a note in the
 * file, which says where it is and in which registers its arguments are. A tracer puts a breakpoint
 * there. The format is that of <sys/sdt.h>, described at
 * https://sourceware.org/systemtap/wiki/UserSpaceProbeImplementation, so that no package is needed
 * to build. Arguments are unsigned, of 64 bits.
 *
 * The section .stapsdt.base is of one byte; tracers find by it how far the file's addresses were
 * moved after the link. */

/* Not in the static library: the linker gold can't join its section with that of libstdc++. */
#if defined(HAKMEM_SHARED) && UINTPTR_MAX == UINT64_MAX
#define PROBE_NOTE(provider, name, arguments)                               \
    "990: nop\n"                                                            \
    ".pushsection .note.stapsdt,\"\",\"note\"\n"                            \
    ".balign 4\n"                                                           \
    ".4byte 992f-991f, 994f-993f, 3\n" /* bytes of both, the kind */        \
    "991: .asciz \"stapsdt\"\n"                                             \
    "992: .balign 4\n"                                                      \
    "993: .8byte 990b\n"                                                    \
    ".8byte _.stapsdt.base\n"                                               \
    ".8byte 0\n" /* no counter of tracers */                                \
    ".asciz \"" provider "\"\n"                                             \
    ".asciz \"" name "\"\n"                                                 \
    ".asciz \"" arguments "\"\n"                                            \
    "994: .balign 4\n"                                                      \
    ".popsection\n"                                                         \
    ".ifndef _.stapsdt.base\n"                                              \
    ".pushsection .stapsdt.base,\"aG\",\"progbits\",.stapsdt.base,comdat\n" \
    ".weak _.stapsdt.base\n"                                                \
    ".hidden _.stapsdt.base\n"                                              \
    "_.stapsdt.base: .space 1\n"                                            \
    ".size _.stapsdt.base, 1\n"                                             \
    ".popsection\n"                                                         \
    ".endif\n"
#define PROBE1(provider, name, a) \
    __asm__ volatile(PROBE_NOTE(provider, name, "8@%0")::"r"((uint64_t)(a)))
#define PROBE3(provider, name, a, b, c)                                                \
    __asm__ volatile(PROBE_NOTE(provider, name, "8@%0 8@%1 8@%2")::"r"((uint64_t)(a)), \
                     "r"((uint64_t)(b)), "r"((uint64_t)(c)))
#else
#define PROBE1(provider, name, a) ((void)0)
#define PROBE3(provider, name, a, b, c) ((void)0)
#endif

#endif

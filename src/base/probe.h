/* Static probes for tracers (bpftrace, perf, gdb, SystemTap): PROBE1("provider", "name", a) and
 * PROBE3 with three arguments. A probe is one instruction that does nothing, and a note in the
 * file, which says where it is and in which registers its arguments are. A tracer puts a breakpoint
 * there. The format is that of <sys/sdt.h>, described at
 * https://sourceware.org/systemtap/wiki/UserSpaceProbeImplementation, so that no package is needed
 * to build. Arguments are unsigned, of 64 bits.
 *
 * The section .stapsdt.base is of one byte; tracers find by it how far the file's addresses were
 * moved after the link. */
#ifndef HAKMEM_BASE_PROBE_H
#define HAKMEM_BASE_PROBE_H

#include <stdint.h>

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

/* Which architecture a system call filter sees here. */
#ifndef HAKMEM_TESTS_ARCHITECTURE_H
#define HAKMEM_TESTS_ARCHITECTURE_H

#include <linux/audit.h>

#if defined(__x86_64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#else
#error "which architecture a filter sees here is not known"
#endif

#endif

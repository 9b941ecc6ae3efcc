/* Assertions: conditions that debug builds check. HAKMEM_ASSERT turns them on, together with the
 * ranks and holders of locks (os/rank.h); CMake sets it for Debug builds and for libhakmem-debug.
 * (It is not NDEBUG, because tests are compiled without NDEBUG against a release library, and a
 * lock must have one size on both sides.) A release build only compiles them. */
#ifndef HAKMEM_BASE_ASSERT_H
#define HAKMEM_BASE_ASSERT_H

#include "base/defs.h"

#ifndef HAKMEM_ASSERT
#define HAKMEM_ASSERT 0
#endif

#if HAKMEM_ASSERT

/* Writes what and where to standard error, and the locks that the thread holds; then ends the
 * process at once. Allocates nothing, takes no lock, and asks no handler of the program's, which
 * might do either. Defined one layer above, in os/lock_checked.c. */
COLD __attribute__((noreturn)) void assertion_failed(const char *file, unsigned line,
                                                     const char *function, const char *what);

#define ASSERT(x) (likely(x) ? (void)0 : assertion_failed(__FILE__, __LINE__, __func__, #x))

#else
#define ASSERT(x) ((void)sizeof(!(x)))
#endif

#endif

/* The clock of os.h. The kernel puts a function into each process that reads it without a system
 * call; libc's function for it may be replaced by another library, which may allocate. */
#ifndef HAKMEM_OS_CLOCK_H
#define HAKMEM_OS_CLOCK_H

#include "base/defs.h"

/* Where the kernel has put its functions (AT_SYSINFO_EHDR), or 0; before that each look is a call.
 */
void clock_start(uintptr_t functions);

#endif

/* The registers of a thread that is stopped. */
#ifndef HAKMEM_LOOK_REGISTERS_H
#define HAKMEM_LOOK_REGISTERS_H

#include <sys/types.h>

#include "leaks.h"

/* Those that may hold pointers. False where the kernel does not say. */
bool registers_read(pid_t thread, struct registers *registers);

/* Whether it is ending by itself, and only this thread: by the system call for that. */
bool registers_end_thread(const struct registers *registers);

#endif

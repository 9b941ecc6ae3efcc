/* How much memory a process has, as the kernel reports it; read without using the heap. */
#ifndef HAKMEM_TESTS_RESIDENT_H
#define HAKMEM_TESTS_RESIDENT_H

#include <stddef.h>
#include <sys/types.h>

struct resident {
    size_t all;           /* bytes in memory, of whatever kind */
    size_t anonymous;     /* of them, not a file's */
    size_t private_dirty; /* of them, this process's alone and written to */
};

/* Of the process `pid`, 0 for the calling one; ends the program where the kernel doesn't tell. */
struct resident resident_of(pid_t pid);

#endif

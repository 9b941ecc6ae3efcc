/* Traces a program and all that it starts, and searches each process for leaks at its end. */
#ifndef HAKMEM_LOOK_TRACE_H
#define HAKMEM_LOOK_TRACE_H

#include <stdbool.h>
#include <sys/types.h>

struct trace {
    pid_t program;
    char **reporter; /* a command that tells about a process, to which words are added; null ends */
    const char *file; /* that it is to write, with %p for the number of the process; or null */
    int lost;         /* a descriptor: a byte is written where something is lost; -1: none */
};

/* Begins; 0, or the number of an error. */
int trace_begin(pid_t program);

/* Until all have ended. */
void trace_all(const struct trace *trace);

#endif

/* Traces a program and all that it starts, and looks at each process at its end. */
#ifndef HAKMEM_LOOK_TRACE_H
#define HAKMEM_LOOK_TRACE_H

#include <stdbool.h>
#include <sys/types.h>

/* What is done at the end of a process. In names of files %p stands for its number; without it,
 * those of other processes than the program have it before their last dot. */
struct trace {
    pid_t program;
    const char *profile; /* a file for its heap profile; or null */
    bool leaks;          /* it is searched for leaks */
    char **reporter;     /* a command that tells of these, to which words are added; null ends */
    const char *file;    /* that the reporter is to write; or null */
    int lost;            /* a descriptor: a byte is written where something is lost; -1: none */
    bool known;          /* it was said that the program does not use hakmem */
};

/* Begins; 0, or the number of an error. */
int trace_begin(pid_t program);

/* Until all have ended. */
void trace_all(const struct trace *trace);

#endif

/* Traces a program and all that it starts, and looks at each process at its end. */
#ifndef HAKMEM_LOOK_TRACE_H
#define HAKMEM_LOOK_TRACE_H

#include <stdbool.h>
#include <sys/types.h>

#include "budgets.h"

/* What is done at the end of a process. In names of files %p stands for its number; without it,
 * those of other processes than the program have it before their last dot. */
struct trace {
    pid_t program;
    const char *profile; /* a file for its heap profile; or null */
    bool leaks;          /* it is searched for leaks */
    struct budgets budgets;
    char **reporter;  /* a command that tells of these, to which words are added; null ends */
    const char *file; /* that the reporter is to write; or null */
    int told;         /* a descriptor; -1: none. A byte is written for what the exit status is to
                         say: one of these */
    bool known;       /* it was said that the program does not use hakmem */
};

enum {
    BYTE_LOST = '1',      /* a process has lost something */
    BYTE_EXCEEDED = '2',  /* it exceeded a budget */
    BYTE_UNCHECKED = '0', /* its budgets could not be checked */
    BYTE_OVER = '.'       /* the program has ended, and all of these were written of it */
};

/* Begins; 0, or the number of an error. */
int trace_begin(pid_t program);

/* Until all have ended. */
void trace_all(const struct trace *trace);

#endif

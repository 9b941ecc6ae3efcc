/* A write to memory that is no block's, in a child, and whether a hardened heap found it. */
#ifndef HAKMEM_TESTS_MISUSE_WROTE_H
#define HAKMEM_TESTS_MISUSE_WROTE_H

#include "../api/check.h"

#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

/* For a child that has written. */
static inline void tell_that_it_wrote(void)
{
    if (write(STDERR_FILENO, "!", 1) != 1)
        _exit(3);
}

/* By a report that has `words`, or by SIGSEGV in the write itself. */
static inline bool is_found(struct child_end end, const char *words)
{
    int by = WIFSIGNALED(end.status) ? WTERMSIG(end.status) : 0;
    return end.said[0] == '!' ? by == SIGABRT && strstr(end.said, words) != NULL : by == SIGSEGV;
}

#endif

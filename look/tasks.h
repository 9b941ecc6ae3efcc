/* The threads of all processes that are traced. */
#ifndef HAKMEM_LOOK_TASKS_H
#define HAKMEM_LOOK_TASKS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "leaks.h"

struct task {
    pid_t number, process;
    pid_t creator;  /* the process that made it */
    bool announced; /* its creator's stop was seen */
    bool waits;     /* it stopped before that, and stays so */
    bool ends;      /* it is at its end, or beyond */
    bool stays;     /* at its end, stopped */
    bool borrows;   /* of the first thread: its memory is another process's, until it executes */
    bool reported;  /* of the first thread: its process was looked at */
    struct registers *registers; /* as they were at its end; null where they mean nothing */
};

/* Null where there is none. */
struct task *task_find(pid_t number);

/* The one of this number, made anew if there is none. Null without memory; valid until the next
 * call. */
struct task *task_get(pid_t number);

void task_drop(pid_t number);

/* All threads of a process but the one, or all if it is 0. */
void tasks_drop(pid_t process, pid_t but);

/* The next one of a process, or of any where it is 0; null starts. */
struct task *task_after(const struct task *task, pid_t process);

#endif

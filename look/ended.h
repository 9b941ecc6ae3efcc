/* Processes at their end: writes the heap profile of one, searches it for leaks, and has the
 * reporter tell what was found. */
#ifndef HAKMEM_LOOK_ENDED_H
#define HAKMEM_LOOK_ENDED_H

#include "leaks.h"
#include "trace.h"

/* The one whose last thread is `thread`, which is stopped. `signal` ends it, or 0. */
void ended_look(const struct trace *trace, pid_t process, pid_t thread,
                const struct registers *const *threads, size_t count, int signal);

/* This one was ended by SIGKILL, which lets nobody look. */
void ended_killed(const struct trace *trace, pid_t process);

/* The program itself was executed; before, it is this one. */
void ended_program_runs(pid_t program);

/* The program has ended, and was looked at, unless it could not be. */
void ended_program(const struct trace *trace);

/* No process is left: says so if none could be looked at. */
void ended_all(const struct trace *trace);

#endif

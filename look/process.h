/* A running process as a target. */
#ifndef HAKMEM_LOOK_PROCESS_H
#define HAKMEM_LOOK_PROCESS_H

#include "sheet/target.h"

/* Opens it; on failure says why in one line, and returns false. What it read is as long as this
 * program. */
bool process_open(struct target *t, int pid, struct why *why);

/* Whether /proc numbers processes as system calls do. It does not where it was mounted for another
 * PID namespace: there the number of one process in /proc is that of another one in a call. */
bool process_numbers_agree(void);

/* A thread of it that lives, for calls that take one. */
int process_thread(void);

/* Reads what is mapped. May be called again. */
bool process_maps(struct target *t, struct why *why);

/* Whether it is still the process that was opened. */
bool process_same(void);

/* The kernel's sum of what is resident, in bytes; 0 if it does not say. */
uint64_t process_rss(void);

#endif

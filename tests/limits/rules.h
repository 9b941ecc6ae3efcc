/* Filters of system calls from lists of rules. What no rule fits kills the process.
 *
 * A line of a list is the name of a system call, what becomes of it (allow, which may be left out;
 * kill; error NUMBER), and a condition: if ARGUMENT is VALUE, within MASK (no other bit is set) or
 * beyond MASK (some is). The first line that fits decides. "a, b, c" allows each of these calls. */
#ifndef HAKMEM_TESTS_RULES_H
#define HAKMEM_TESTS_RULES_H

#include <stdbool.h>

/* Reads lists, with commas between them: a file, as those of sandboxes/, or PAGE#NAME+NAME, which
 * stands for the blocks "# rules: NAME" of a page of documentation. Allocates nothing. */
void rules_read(char *lists);

/* For all threads. Skips the test where the kernel can't. */
void rules_apply(void);

/* Until hakmem's own thread has given back memory that `leaves_idle` left: the process has threads,
 * and all others rest. False if it never does; true at once without hakmem. */
bool rules_scavenger_returns(void (*leaves_idle)(void));

#endif

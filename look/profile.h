/* The heap profile of a process (src/sheet/profile_lines.h), read from outside. */
#ifndef HAKMEM_LOOK_PROFILE_H
#define HAKMEM_LOOK_PROFILE_H

#include "sheet/tables.h"

/* Prints it, with what is mapped in the process. */
bool profile_print(struct target *t, const struct tables *tables, int pid, struct why *why);

#endif

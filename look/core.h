/* A core file as a target: what a process left. Of it is known what was written to the file, and
 * not what was resident; what lies in files of the process is read from these, where they are still
 * the same. */
#ifndef HAKMEM_LOOK_CORE_H
#define HAKMEM_LOOK_CORE_H

#include "sheet/target.h"

/* Opens it; on failure says why in one line, and returns false. */
bool core_open(struct target *t, const char *path, struct why *why);

/* Whether its end is missing. */
bool core_is_cut(void);

#endif

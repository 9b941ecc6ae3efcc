/* Marks: moments of the program's life that have a name (hakmem_mark). Of each of the first
 * MARKS_MOST names it is known how often and when (base/watch.h). */
#ifndef HAKMEM_PROFILE_MARKS_H
#define HAKMEM_PROFILE_MARKS_H

#include "base/defs.h"
#include "base/watch.h"

/* Counts one more. Lock: cacheless. */
void mark_count(const char *name);

/* The name at this place, from 0 on; null where there is none. Any thread. */
const struct watch_mark *mark_at(unsigned place);

#endif

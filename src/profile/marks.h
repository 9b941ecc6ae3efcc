/* Marks: moments of the program's life that have a name (hakmem_mark). Of each of the first
 * MARKS_MOST names it is known how often and when (base/watch.h). */
#ifndef HAKMEM_PROFILE_MARKS_H
#define HAKMEM_PROFILE_MARKS_H

#include "base/defs.h"
#include "base/watch.h"

/* Counts one more. Lock: cacheless. */
void mark_count(const char *name);

/* Copies the mark at this place, from 0 on; false where there is none. Any thread: each number was
 * right at some time. */
bool mark_read(unsigned place, struct watch_mark *copy);

#endif

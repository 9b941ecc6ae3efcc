/* Finds where a target describes its heap: by a note of the file that holds the library, so without
 * symbols. */
#ifndef HAKMEM_LOOK_FIND_H
#define HAKMEM_LOOK_FIND_H

#include "sheet/heap.h"

/* Finds the tables, and copies them; else says why not. */
bool tables_find(struct target *t, struct tables *tables, struct why *why);

#endif

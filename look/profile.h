/* The heap profile of a process (src/sheet/profile_lines.h), read from outside. */
#ifndef HAKMEM_LOOK_PROFILE_H
#define HAKMEM_LOOK_PROFILE_H

#include "sheet/tables.h"

/* Prints it, with what is mapped in the process. `by_size`: with a further line for each site, of
 * the blocks that it holds by their size:
 *
 *   # sizes BYTES:BLOCKS:VARIANCE:SAMPLES ...
 *
 * where the number of blocks is an estimate, and the variance that of its error. */
bool profile_print(struct target *t, const struct tables *tables, int pid, bool by_size,
                   struct why *why);

#endif

/* Free slices and empty superslabs, given back to the kernel: those of the superslab that was last
 * given slices longest ago go first, and empty superslabs whole. No call into the kernel is made
 * with the lock held: what is to go back is taken first, so that nobody is handed it meanwhile. One
 * thread at a time. */
#ifndef HAKMEM_BACK_SLICES_PURGE_H
#define HAKMEM_BACK_SLICES_PURGE_H

#include "base/defs.h"

/* Gives the pages of up to `most` free slices back, those unused longest first; how many. */
size_t slices_purge(size_t most);

/* Gives all that is free back to the kernel; bytes that may have held pages. */
size_t superslabs_release(void);

#endif

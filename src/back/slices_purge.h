/* Returns free slices and empty superslabs to the kernel. The slices of the superslab that has been
 * given none for the longest time go first; empty superslabs go back whole. No system call is made
 * with the lock held: what is to go back is taken out first, so no thread can get it meanwhile. One
 * thread at a time. */
#ifndef HAKMEM_BACK_SLICES_PURGE_H
#define HAKMEM_BACK_SLICES_PURGE_H

#include "base/defs.h"

/* Gives the pages of up to `most` free slices back, those unused longest first; how many. */
size_t slices_purge(size_t most);

/* Gives all that is free back to the kernel; bytes that may have held pages. */
size_t superslabs_release(void);

#endif

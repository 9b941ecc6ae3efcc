/* Which superslabs have huge pages: in a larger heap those that begin where the one before was full
 * of small blocks. */
#ifndef HAKMEM_BACK_HUGE_PAGES_H
#define HAKMEM_BACK_HUGE_PAGES_H

#include "back/superslab.h"

/* Decides for a new superslab, wanted for blocks of at most a page (`fine`), or others. With the
 * superslabs' lock. */
void superslab_starts(struct superslab *s, bool fine);

/* Slices of s, which has huge pages, are taken that were not dirty: free ones that were never taken
 * share their pages, and are dirty from now on. With the same lock. */
void superslab_touched(struct superslab *s, uint64_t mask);

/* Pages inside s are to go back: no huge page may hold them, nor fill the holes again. One
 * thread at a time. */
void superslab_make_small(struct superslab *s);

#endif

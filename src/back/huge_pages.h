/* Requests huge pages for superslabs of a large heap that stay full. One thread at a time. */
#ifndef HAKMEM_BACK_HUGE_PAGES_H
#define HAKMEM_BACK_HUGE_PAGES_H

#include "back/superslab.h"

/* Asks for huge pages for the superslab that has been without a free slice for longest, if it has
 * been for long and there are many. */
void superslab_make_huge(void);

/* Pages inside s are to go back: no huge page may hold them, nor fill the holes again. Which starts
 * its time anew. */
void superslab_make_small(struct superslab *s);

#endif

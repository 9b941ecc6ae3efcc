/* Huge blocks (back/huge.h), with the lock of the thread's cache, or that of threads without one.
 */
#ifndef HAKMEM_API_HUGE_BLOCKS_H
#define HAKMEM_API_HUGE_BLOCKS_H

#include "base/defs.h"
#include "base/misuse.h"

/* As huge_take; not_entered() while a fork holds the heap. */
void *huge_take_inside(size_t n, size_t align, bool *zero);

struct finding huge_give_inside(void *p);

/* A huge block where it stands, or by moving its pages; null where that can't be. */
void *huge_resize_inside(void *p, size_t n);

#endif

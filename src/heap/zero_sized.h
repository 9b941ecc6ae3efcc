/* What malloc(0) returns in a hardened heap with guards: addresses in a region that nobody can
 * touch. */
#ifndef HAKMEM_HEAP_ZERO_SIZED_H
#define HAKMEM_HEAP_ZERO_SIZED_H

#include "base/defs.h"
#include "base/misuse.h"

/* An address chosen by chance, a multiple of 16; null where none is left. The caller holds its
 * cache's lock, or that of threads without one; the other functions need none. */
void *zero_sized_take(void);

/* Frees p; MISUSE_FOREIGN where it is not in the region. */
enum misuse zero_sized_give(const void *p);

/* What is wrong with p as one in use; MISUSE_FOREIGN where it is not in the region, MISUSE_BEYOND
 * between two addresses. */
enum misuse zero_sized_look(const void *p);

/* Whether p is in use. */
bool zero_sized_holds(const void *p);

/* For the accounting: bytes of the region, 0 where there is none. */
size_t zero_sized_mapped(void);

#endif

/* The transfer cache: for each class a stack of pointers that passes blocks from threads that free
 * to threads that allocate, before any bit is changed. Neither taking nor putting waits. */
#ifndef HAKMEM_HEAP_TRANSFER_H
#define HAKMEM_HEAP_TRANSFER_H

#include "base/defs.h"
#include "base/misuse.h"

/* Takes up to n blocks, stored to the slots before `end`. Returns how many. */
size_t transfer_take(unsigned cls, void **end, size_t n);

/* Puts up to n blocks from `blocks` on. Returns how many it took, the first ones. */
size_t transfer_put(unsigned cls, void **blocks, size_t n);

/* Whether p is among them. */
bool transfer_holds(unsigned cls, const void *p);

/* Frees what nobody took since the last call, or all; the first wrong block found. */
struct finding transfers_decay(bool all);

/* For the accounting: a class's blocks, how many there are and may be. */
void **transfer_inside(unsigned cls, uint32_t **count, uint32_t *capacity);

#endif

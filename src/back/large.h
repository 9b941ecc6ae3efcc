/* Blocks above the largest class, each in slices of its own.
 *
 * Up to 2 MiB a block is a run of slices in a superslab; beyond that it is huge: a mapping of its
 * own, which after free is kept in the big-block cache, within a budget, for the next one. Only the
 * slice in which a block begins has a map entry, and the block begins where the slice does.
 * Thread safe. */
#ifndef HAKMEM_BACK_LARGE_H
#define HAKMEM_BACK_LARGE_H

#include "base/defs.h"
#include "base/misuse.h"

#define RUN_MOST (2 * MiB)

/* A block of n bytes, n from 1 to PTRDIFF_MAX, at a multiple of `align`, a power of two. `*zero`
 * tells whether it is known to hold zeroes. Null without memory. */
void *large_take(size_t n, size_t align, bool *zero);

/* Frees p, whose bin is `bin` (large or huge). */
enum misuse large_give(void *p, unsigned bin);

/* Bytes that the program may use of p, 0 if no such block begins at p. */
size_t large_usable(const void *p, unsigned bin);

/* Makes p hold n bytes, more or fewer, without copying. The result is p, for a huge block perhaps
 * another address; null when it can't be done that way, then nothing has changed. */
void *large_resize(void *p, unsigned bin, size_t n);

/* Gives all that is kept for reuse back to the kernel. */
void large_release(void);

void large_fork_lock(void);
void large_fork_unlock(void);

#endif

/* The one door: everything rare. The fast bodies in malloc.c enter here with a tail call. */
#ifndef HAKMEM_API_SLOW_H
#define HAKMEM_API_SLOW_H

#include "base/defs.h"

/* Each returns what the public function of that name returns, errno included. */
void *slow_malloc(size_t n);
void *slow_calloc(size_t n);
void slow_free(void *p);
void *slow_realloc(void *p, size_t n);
void *slow_aligned(size_t align, size_t n);

/* Bytes of a page, as the kernel says. */
size_t page_size(void);

/* Bytes that the program may use of p; reports a pointer that is no block's, as `function`'s. */
size_t block_usable(const void *p, const char *function);

#endif

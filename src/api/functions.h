/* With check_functions: what operator new and delete note and compare. */
#ifndef HAKMEM_API_FUNCTIONS_H
#define HAKMEM_API_FUNCTIONS_H

#include "base/defs.h"
#include "base/misuse.h"

/* p, null or what a slow path returned, was allocated by these functions. Returns p. */
void *function_note(void *p, enum maker maker);

/* Whether p may be freed by `function`, which is for blocks of `maker`; from then on it is as one
 * of malloc. Reports that it may not. True for what is no block in use: that is left to free. */
bool function_fits(void *p, enum maker maker, const char *function, const void *caller);

/* block_find for realloc, which also reports a block of new, and returns 0. */
size_t resized_find(void *p, unsigned *found, const void *caller);

#endif

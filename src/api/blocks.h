/* What an address is, for calls that got one: whether it is a block in use, how many bytes it has,
 * and reports where it is none. */
#ifndef HAKMEM_API_BLOCKS_H
#define HAKMEM_API_BLOCKS_H

#include "base/defs.h"
#include "base/misuse.h"
#include "front/cache.h"

/* The largest size that is tried. No processor has more address space for a program; PTRDIFF_MAX is
 * far above. */
#define MOST_BYTES ((size_t)1 << 52)

/* Misuse that needs no look at other blocks. Where that returns, the call is ignored. */
void report_at_once(const char *function, enum misuse what, const void *p, const void *caller);
void report_foreign(const char *function, const void *p, const void *caller);

/* Reports what was found while p was freed, if anything: mostly about another block, which was
 * freed earlier. */
void report_found(struct finding found, const void *p, const void *caller);

/* Bytes of a block that n bytes at a multiple of `align` need, before they are rounded up. */
size_t least_of(size_t n, size_t align);

/* Bytes that the program may use of a new block of n bytes at a multiple of `align`. */
size_t usable_of_new(size_t n, size_t align);

/* Whether a block of a class is free already, as far as the block or its page shows. */
bool freed_before(unsigned stack, const void *p);

/* Bytes that the program may use of p, and the bin of its entry in the map; reports a pointer that
 * is no block's, as `function`'s, and returns 0. */
size_t block_find(const void *p, unsigned *found, const char *function, const void *caller);
size_t block_usable(const void *p, const char *function, const void *caller);

/* Bytes from p, any address, to the end of what the program may use of the block that holds it; 0
 * at that end. SIZE_MAX where p is nowhere in hakmem's memory. Reports an address there that is in
 * no block in use, as `function`'s, and returns 0. */
size_t block_bytes_from(const void *p, const char *function, const void *caller);

/* What is wrong with an address in a slab of a plain heap, where a block begins, as one of a block
 * in use; and the fewest bytes that one with so many usable ones was made for. */
enum misuse plain_look(const void *p, unsigned bin);
size_t plain_least(const void *p, unsigned bin, size_t usable);

/* Whether realloc ever left a block as it was for want of memory for a smaller one. Atomic. */
extern bool sizes_unsure HIDDEN;

/* With check_sizes: reports a size that the block at p was not allocated with, or an alignment
 * but 1. p may be anything; one that is no block is left to free. */
void sized_free_check(const void *p, size_t align, size_t size, const void *caller);

/* ---- with check_functions: what operator new and delete note and compare ---- */

/* p, null or what a slow path returned, was allocated by these functions. Returns p. */
void *function_note(void *p, enum maker maker);

/* Whether p may be freed by `function`, which is for blocks of `maker`; from then on it is as one
 * of malloc. Reports that it may not. True for what is no block in use: that is left to free. */
bool function_fits(void *p, enum maker maker, const char *function, const void *caller);

/* block_find for realloc, which also reports a block of new, and returns 0. */
size_t resized_find(void *p, unsigned *found, const void *caller);

/* ---- whether a block is free already ----
 *
 * The proof that a block is free already, for a free that found the seal (front/cache.h). A program
 * may have copied the seal from memory that it never wrote, so a block counts as free only if it is
 * found among the free ones. */

/* Whether the block of the class at p is free: by its slab's bits, in the transfer cache, or in a
 * stack of any thread. The caller holds no lock. Takes the lock of each cache in turn; a program
 * without errors is here by chance only. */
bool block_is_free(unsigned cls, const void *p);

#endif

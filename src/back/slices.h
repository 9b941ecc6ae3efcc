/* Slices of superslabs, taken and given back. A request takes from the superslab that fits
 * tightest, its lowest slices first, so that nearly empty superslabs become empty and go back. Free
 * slices keep their pages until a higher layer finds that they are idle (slices_idle) and purges
 * them (slices_purge.h). Thread safe. */
#ifndef HAKMEM_BACK_SLICES_H
#define HAKMEM_BACK_SLICES_H

#include "back/superslab.h"

/* n free slices, n from 1 to 64, that begin at a multiple of `align` slices (a power of two up to
 * 64); their map entries are covered and say "foreign". `*zero` tells whether all their bytes are
 * known to be zero. `fine`: for blocks of at most a page, so that all of it will be touched. Null
 * without memory. */
void *slices_take(size_t n, size_t align, bool fine, bool *zero, struct superslab **from);

/* A free slice that has some of these guard pages already (slices_guard), and no others; null if
 * none was found quickly. Its pages need not go and come again, and blocks of one class follow each
 * other there. */
void *slices_take_guarded(uint64_t pages, bool fine, bool *zero, struct superslab **from);

/* Gives n slices back; their map entries say "foreign" already. */
void slices_give(struct superslab *s, void *start, size_t n);

/* Of n slices that are about to be given back so many bytes have gone to the kernel already, as
 * free pages of a slab: they are taken again with the slices. */
void slices_lack(struct superslab *s, void *start, size_t n, size_t bytes);

/* Nobody can touch these pages, a set, of a slice that is taken, from now on; if the kernel lets
 * it. That lasts while the slice is free and taken again. */
void slices_guard(struct superslab *s, void *start, uint64_t pages);

/* Everybody can touch n slices that were just taken, `but` pages of the first one that nobody could
 * touch before. False where the kernel refuses: then the slices are of no use. */
bool slices_unguard(struct superslab *s, void *start, size_t n, uint64_t but);

/* Adds `more` slices behind n taken ones where they stand; false when those aren't free. */
bool slices_extend(struct superslab *s, void *start, size_t n, size_t more);

/* Free slices that may hold pages. */
size_t slices_dirty(void);

/* The fewest slices that lay free with their pages since the last call: what was not needed. */
size_t slices_idle(void);

#endif

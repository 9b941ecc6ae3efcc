/* Slices of superslabs, taken and given back. A request takes from the superslab that fits
 * tightest, its lowest slices first, so that nearly empty superslabs become empty and go back. Free
 * slices keep their pages until a higher layer finds that they are idle (slices_idle) and purges
 * them. Thread safe. */
#ifndef HAKMEM_BACK_SLICES_H
#define HAKMEM_BACK_SLICES_H

#include "back/superslabs.h"
#include "base/defs.h"

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

/* The same for the page in front of a slice that was just taken, if that is one of the superslab:
 * no slab has a block there, where there are guard pages. */
void slices_guard_before(struct superslab *s, void *start);

/* Everybody can touch a slice that was just taken, but its last page and `but` pages that nobody
 * could touch before. False where the kernel refuses: then the slice is of no use. */
bool slices_unguard(struct superslab *s, void *start, uint64_t but);

/* Whether nobody can touch the page at p, as far as s goes; also in front of s. Constant while p is
 * right before a block in use, or becomes false. */
bool slices_guarded(const struct superslab *s, const void *p);

/* Adds `more` slices behind n taken ones where they stand; false when those aren't free. */
bool slices_extend(struct superslab *s, void *start, size_t n, size_t more);

/* No slice is taken or given until slices_go_on, so none gets other guard pages; false where that
 * would mean to wait. */
bool slices_try_stop(void);
void slices_go_on(void);

/* Where free memory is zero: a page of the free slices to which something wrote, while they stop;
 * null where there is none among the first `*most` bytes, which it takes from that. */
void *slices_written(size_t *most);

/* Free slices that may hold pages. */
size_t slices_dirty(void);

/* The fewest slices that lay free with their pages since the last call: what was not needed. */
size_t slices_idle(void);

/* ---- back to the kernel ----
 *
 * The slices of the superslab that has been given none for the longest time go first; empty
 * superslabs go back whole. No system call is made with the lock held: what is to go back is taken
 * out first, so no thread can get it meanwhile. One thread at a time. */

/* Gives the pages of up to `most` free slices back, those unused longest first; how many. */
size_t slices_purge(size_t most);

/* Gives all that is free back to the kernel; bytes that may have held pages. */
size_t superslabs_release(void);

#endif

/* The superslabs' lock, their lists and counts, only for the files that superslab.h names. The
 * caller holds the lock. */
#ifndef HAKMEM_BACK_SUPERSLAB_LISTS_H
#define HAKMEM_BACK_SUPERSLAB_LISTS_H

#include "back/superslab.h"
#include "base/assert.h"
#include "os/lock.h"

extern struct lock superslabs_lock HIDDEN;

/* By the longest free run: [n - 1] is of length n; a head's next is null before its first use. And
 * a bit for each list that has members. */
extern struct list superslabs_by_longest[SUPERSLAB_SLICES] HIDDEN;
extern uint64_t superslabs_nonempty HIDDEN;

/* Those without a free slice, newest first. */
extern struct list superslabs_dense HIDDEN;

/* Those with dirty slices, that is free ones that may hold pages; newest first. */
extern struct list superslabs_aged HIDDEN;

/* The fewest dirty slices since slices_idle. */
extern size_t slices_dirty_low HIDDEN;

static inline uint64_t slice_mask(unsigned first, size_t n)
{
    return low_bits((unsigned)n) << first;
}

static inline unsigned slice_index(const struct superslab *s, const void *start)
{
    return (unsigned)((size_t)((const char *)start - s->base) / SLICE);
}

static inline uint64_t all_slices(const struct superslab *s) { return low_bits(s->slices); }

static inline bool superslab_empty(const struct superslab *s) { return s->free == all_slices(s); }

/* Its free slices have changed; `longest` is the length of the longest run, or more. */
void superslab_relist(struct superslab *s, unsigned longest);

/* n slices from `first` on were freed: only the run that they are in has grown. */
void superslab_relist_larger(struct superslab *s, unsigned first, unsigned n);

/* n slices are no longer free with their pages. */
void slices_dirty_less(size_t n);

/* Slices became free; those that may hold pages make it the newest of its kind. */
void slices_mark_free(struct superslab *s, uint64_t mask);

/* What is lacking in some of the slices that lack pages, which from now on don't; about, since it
 * is known of all of them together. */
size_t slices_whole(struct superslab *s, uint64_t mask);

#endif

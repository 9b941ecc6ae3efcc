/* A superslab: an aligned region of 4 MiB, cut into 64 slices of 64 KiB, shared by all classes and
 * all threads. One word of bits says which slices are free, another which of them may hold pages.
 * If there is no room for a whole superslab, shorter ones are used.
 *
 * Here they are made and ended, get their addresses and their huge pages, and have their lists;
 * slices.h takes slices, gives them back, and returns free ones to the kernel. All share one lock
 * (superslabs_lock). Only locks of metadata and of the map are taken under it. */
#ifndef HAKMEM_BACK_SUPERSLABS_H
#define HAKMEM_BACK_SUPERSLABS_H

#include "back/map.h"
#include "base/defs.h"
#include "base/list.h"
#include "os/lock.h"

#define SUPERSLAB (4 * MiB)
#define SUPERSLAB_SLICES 64

#define GUARD_PAGES_MOST 16   /* pages of a slice, where there are guard pages */
#define GUARDS_UNKNOWN 0xffff /* any page of the slice */
#define GUARD_LAST 0x8000     /* the last page of the slice: see fenced */

struct superslab {
    struct list node; /* by longest free run, or dense; lock: superslabs */
    struct list age;  /* those with free slices that may hold pages; same lock */
    char *base;       /* constant */
    uint64_t free;    /* slices free; lock: superslabs */
    uint64_t touched; /* slices handed out since they were last zero; same lock */
    uint64_t fine;    /* slices last taken for blocks of at most a page; same lock */
    uint64_t purged;  /* slices given back and not used since; same lock */
    uint64_t holed;   /* slices that lack pages (slices_lack); same lock */
    size_t lacking;   /* bytes, of all of them; same lock */
    uint64_t huge;    /* slices for which huge pages were asked; same lock */
    uint64_t fenced; /* slices whose last page nobody can touch, until the superslab ends; atomic */
    uint16_t guarded[SUPERSLAB_SLICES]; /* other pages of each slice that nobody can touch, a set;
                                           atomic, changes by who has taken the slice */
    bool unguardable;                   /* the kernel refused: no page becomes one; atomic */
    uint8_t slices;  /* 64, or less under a limit, or in the first (superslab_grow); same lock */
    uint8_t longest; /* the list it is in: no free run is longer; same lock */
};

/* ---- how they are made and ended ----
 *
 * The caller holds the superslabs' lock, except for superslab_end and the counts. */

/* Free places where a superslab was before, in a hardened heap: with so many the next one takes one
 * of them by chance, else any of all. After a trim in a long test 6 MiB are resident; if any place
 * is always taken, 8 after 8 minutes and 12 after 33, since the map has pages for each place. */
#define SLOTS_LEFT 64

/* A new one, all free, with room for `least` slices; null without memory. */
struct superslab *superslab_new(size_t least);

/* Makes the first one longer where it stands, by n free slices or more; null if it can't. */
struct superslab *superslab_grow(size_t n);

/* Takes an empty one out of everything; and unmaps it then, without the lock. At its limit of
 * mappings the kernel can refuse: then it stays, and its pages go. Whether they have. */
void superslab_withdraw(struct superslab *s);
bool superslab_end(struct superslab *s);

/* Superslabs mapped now, and their bytes. */
size_t superslabs_mapped(void);
size_t superslabs_bytes(void);

/* ---- their lock, lists and counts, for slices.c and for the accounting ---- */

extern struct lock superslabs_lock HIDDEN;

/* By the longest free run: [n - 1] is of length n; a head's next is null before its first use. And
 * a bit for each list that has members. */
extern struct list superslabs_by_longest[SUPERSLAB_SLICES] HIDDEN;
extern uint64_t superslabs_nonempty HIDDEN;

extern size_t superslabs_count HIDDEN; /* mapped now; atomic */

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

/* ---- their addresses ----
 *
 * In slots of a superslab's length, in the window, the lowest free one first; in a hardened heap
 * anywhere in a wider range, since there no free takes the fast path. */

/* Chooses where the first superslab lies; `random` keeps that from being known. */
void slots_start(uint64_t random);

/* Whether a hardened heap may have one more that only adds places to choose from. */
bool superslabs_may_spread(void);

/* Maps `length` bytes, at most a superslab's, in a free slot; null if that fails. And the slot at
 * base is free again; an address outside of all slots is ignored. */
char *slot_map(size_t length);
void slot_unmapped(const char *base);

/* Whether p is in a slot, where nothing but superslabs lies. */
bool slots_hold(const void *p);

/* What an attacker can't guess, in a hardened heap. */
uint64_t slots_random(void);

/* ---- their huge pages ----
 *
 * In a larger heap, those have some that begin where the one before was full of small blocks. */

/* Decides for a new superslab, wanted for blocks of at most a page (`fine`), or others. With the
 * superslabs' lock. */
void superslab_starts(struct superslab *s, bool fine);

/* Slices of s, which has huge pages, are taken that were not dirty: free ones that were never taken
 * share their pages, and are dirty from now on. With the same lock. */
void superslab_touched(struct superslab *s, uint64_t mask);

/* Pages inside s are to go back: no huge page may hold them, nor fill the holes again. One
 * thread at a time. */
void superslab_make_small(struct superslab *s);

#endif

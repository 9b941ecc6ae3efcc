/* Superslabs: aligned regions of 4 MiB, cut into 64 slices of 64 KiB, shared by all classes, all
 * threads and the large blocks. One word of bits says which slices are free, another which of them
 * may hold pages.
 *
 * Superslabs are kept in lists by the most that their longest free run can be; a request takes from
 * the tightest that fits, lowest slice first, so that nearly empty superslabs become empty and go
 * back. Free slices keep their pages until somebody above finds that they lie idle (slices_idle)
 * and has them purged: those of the superslab that was last given slices longest ago go first, and
 * empty superslabs whole. Where no whole superslab can be had, shorter ones serve. Thread safe: one
 * lock, a leaf in the order of locks but for metadata and map. */
#ifndef HAKMEM_BACK_SUPERSLAB_H
#define HAKMEM_BACK_SUPERSLAB_H

#include "back/map.h"
#include "base/defs.h"
#include "base/list.h"

#define SUPERSLAB (4 * MiB)
#define SUPERSLAB_SLICES 64

struct superslab {
    unsigned bin;                      /* BIN_LARGE: first in what the map calls "retired" */
    struct list node;                  /* by longest free run, or dense; lock: superslabs */
    struct list age;                   /* those with free slices that may hold pages; same lock */
    char *base;                        /* constant */
    uint64_t free;                     /* slices free; lock: superslabs */
    uint64_t touched;                  /* slices handed out since they were last zero; same lock */
    uint64_t purged;                   /* slices given back and not used since; same lock */
    uint64_t holed;                    /* slices that lack pages (slices_lack); same lock */
    size_t lacking;                    /* bytes, of all of them; same lock */
    size_t dense_since;                /* the allocation clock when no slice was free; same lock */
    bool huge;                         /* asked for huge pages; same lock */
    uint8_t slices;                    /* 64, or less under a limit; constant */
    uint8_t longest;                   /* the list it is in: no free run is longer; same lock */
    uint8_t run[SUPERSLAB_SLICES];     /* slices of the large block that begins there; its owner */
    uint32_t usable[SUPERSLAB_SLICES]; /* bytes the program may use of it; its owner */
};

/* Chooses where in the window the first superslab lies; `random` keeps that from being known. */
void superslabs_start(uint64_t random);

/* n free slices, n from 1 to 64, that begin at a multiple of `align` slices (a power of two up to
 * 64); their map entries are covered and say "foreign". `*zero` tells whether all their bytes are
 * known to be zero. Null without memory. */
void *slices_take(size_t n, size_t align, bool *zero, struct superslab **from);

/* Gives n slices back; their map entries say "foreign" already. */
void slices_give(struct superslab *s, void *start, size_t n);

/* Of n slices that are about to be given back so many bytes have gone to the kernel already, as
 * free pages of a slab: they are taken again with the slices. */
void slices_lack(struct superslab *s, void *start, size_t n, size_t bytes);

/* Adds `more` slices behind n taken ones where they stand; false when those aren't free. */
bool slices_extend(struct superslab *s, void *start, size_t n, size_t more);

/* Free slices that may hold pages. */
size_t slices_retained(void);

/* The fewest slices that lay free with their pages since the last call: what was not needed. */
size_t slices_idle(void);

/* Gives the pages of up to `most` free slices back, those unused longest first; how many. One
 * thread at a time. */
size_t slices_purge(size_t most);

/* Asks for huge pages for the superslab that has been without a free slice for longest, if it has
 * been for long and there are many. */
void superslab_make_huge(void);

/* Pages inside s are to go back: no huge page may hold them, nor fill the holes again. Which starts
 * its time anew. */
void superslab_make_small(struct superslab *s);

/* Superslabs mapped now, and their bytes. */
size_t superslabs_mapped(void);
size_t superslabs_bytes(void);

/* Gives all that is free back to the kernel; bytes that may have held pages. By one thread at once.
 */
size_t superslabs_release(void);

/* Where all superslabs are kept, for the census. */
struct superslabs_inside {
    struct list
        *by_longest; /* [n - 1]: longest run n; a head's next is null before its first use */
    struct list *aged;
    uint64_t *nonempty;
    size_t *mapped, *retained;
};
struct superslabs_inside superslabs_inside(void);

#endif

/* Superslabs: aligned regions of 4 MiB, cut into 64 slices of 64 KiB, shared by all classes, all
 * threads and the large blocks. One word of bits says which slices are free, another which of them
 * may hold pages.
 *
 * Superslabs are kept in lists by the length of their longest free run; a request takes from the
 * tightest that fits, lowest slice first, so that nearly empty superslabs become empty and go back.
 * Free slices keep their pages until there are more of them than the policy wants; then those of
 * the superslab that was last given slices longest ago go back, and empty superslabs whole. Thread
 * safe: one lock, a leaf in the order of locks but for metadata and map. */
#ifndef HAKMEM_BACK_SUPERSLAB_H
#define HAKMEM_BACK_SUPERSLAB_H

#include "back/map.h"
#include "base/defs.h"
#include "base/list.h"

#define SUPERSLAB (4 * MiB)
#define SUPERSLAB_SLICES 64

struct superslab {
    struct list node;                  /* its list by longest free run; lock: superslabs */
    struct list age;                   /* those with free slices that may hold pages; same lock */
    char *base;                        /* constant */
    uint64_t free;                     /* slices free; lock: superslabs */
    uint64_t touched;                  /* slices handed out since they were last zero; same lock */
    uint8_t longest;                   /* longest free run, the list it is in; same lock */
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

/* Adds `more` slices behind n taken ones where they stand; false when those aren't free. */
bool slices_extend(struct superslab *s, void *start, size_t n, size_t more);

/* Superslabs mapped now. */
size_t superslabs_mapped(void);

/* Gives all that is free back to the kernel. */
void superslabs_release(void);

void superslabs_fork_lock(void);
void superslabs_fork_unlock(void);

#endif

/* A superslab: an aligned region of 4 MiB, cut into 64 slices of 64 KiB, shared by all classes and
 * all threads. One word of bits says which slices are free, another which of them may hold pages.
 * If there is no room for a whole superslab, shorter ones are used.
 *
 *   superslabs.h  makes and ends them, chooses their addresses, and has their lists
 *   slices.h      takes slices, gives them back, and returns free ones to the kernel
 *   huge_pages.h  decides which superslabs have huge pages
 *
 * All share one lock (superslabs_lock). Only locks of metadata and of the map are taken under it.
 */
#ifndef HAKMEM_BACK_SUPERSLAB_H
#define HAKMEM_BACK_SUPERSLAB_H

#include "back/map.h"
#include "base/defs.h"
#include "base/list.h"

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

#endif

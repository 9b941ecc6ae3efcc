/* Blocks above the largest class.
 *
 * Up to 2 MiB a block is a run of slices in a superslab. Above that it is a huge block, a separate
 * mapping, which after free is kept in the big-block cache, within a budget, for the next huge
 * block. Only the slice in which a block begins has a map entry. A run begins where its slice
 * begins. A huge block may begin at any page of its slice, and no other begins there, because it is
 * at least as long as a slice. Thread safe. */
#ifndef HAKMEM_BACK_LARGE_H
#define HAKMEM_BACK_LARGE_H

#include "base/defs.h"
#include "base/list.h"
#include "base/misuse.h"

#define RUN_MOST (2 * MiB)

struct huge {
    unsigned bin;     /* BIN_HUGE: first in what the map calls "parked" */
    struct list node; /* in the big-block cache; lock: dirty */
    char *base;    /* the mapping's start, any page; for the holder of the block or of the lock */
    size_t length; /* bytes mapped, whole slices */
    size_t usable; /* bytes the program may use, whole pages */
};

/* A block of n bytes, n from 1 to PTRDIFF_MAX, at a multiple of `align`, a power of two. `*zero`
 * tells whether it is known to hold zeroes. Null without memory. */
void *large_take(size_t n, size_t align, bool *zero);

/* Frees p, whose bin is `bin` (large, huge or parked). */
enum misuse large_give(void *p, unsigned bin);

/* Frees a block in two steps. A parked block is free, but still whole, until a thread releases it
 * or hands it out again. Any number of threads may try, with any pointer that was once a parked
 * block's, and one succeeds. */
enum misuse large_park(void *p, unsigned bin, size_t *bytes);
void large_release(void *p);

/* Makes it the caller's, not parked any more; null where it is not there. Another may have come to
 * p's slice meanwhile, and begin elsewhere in it: so the block is the one at the address returned.
 */
void *large_unpark(void *p);

/* Hands it out for n bytes if it holds no slice more than large_take would give, or of a huge one
 * an eighth more at most, and `*bytes` tells how many it holds. Else the block now at `*p` is the
 * caller's to free, or it is gone. */
enum reuse { REUSE_DONE, REUSE_UNFIT, REUSE_GONE };
enum reuse large_reuse(void **p, size_t n, size_t *bytes);

/* Where the block begins whose descriptor the slice of p names, in use or parked: perhaps above
 * p. */
void *large_start(const void *p, const void *owner);

/* Whether one begins at p. */
bool large_begins(const void *p);

/* Of a parked block at p with this descriptor: its bin, large or huge, and the bytes it holds. */
unsigned large_parked_bin(const void *owner);
size_t large_parked_bytes(const void *p, const void *owner);

/* Bytes that the program may use of p, 0 if no such block begins at p. */
size_t large_usable(const void *p, unsigned bin);

/* Makes p hold n bytes, more or fewer, without copying. The result is p, for a huge block perhaps
 * another address; null when it can't be done that way, then nothing has changed. */
void *large_resize(void *p, unsigned bin, size_t n);

/* Bytes of huge blocks kept for reuse. */
size_t large_dirty(void);

/* The fewest bytes of huge blocks that were kept for reuse since the last call: what was not
 * needed. */
size_t large_idle(void);

/* Gives up to `most` bytes kept for reuse back to the kernel, the oldest first; how many. */
size_t large_purge(size_t most);

/* Whether p, any address, is in memory of a freed huge block that is kept for the next one. False
 * too where that can't be told without waiting: for reports. */
bool large_is_dirty(const void *p);

/* The big-block cache, for the accounting. */
struct large_inside {
    struct list *kept;
    size_t *dirty_bytes;
};
struct large_inside large_inside(void);

/* In a fork's child: a report may have been looking at what is kept, with its lock and no other. */
void large_fork_child(void);

#endif

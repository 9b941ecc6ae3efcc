/* Huge blocks, above 2 MiB: each is a mapping of its own, which after free is kept dirty for the
 * next one. Only the slice in which a block begins has a map entry, at any page of it; no other
 * begins there, since it is as long as a slice at least. Thread safe. */
#ifndef HAKMEM_BACK_HUGE_H
#define HAKMEM_BACK_HUGE_H

#include "back/forbidden.h"
#include "base/defs.h"
#include "base/misuse.h"

#define HUGE_LEAST (2 * MiB + 1)

/* A block of n bytes, n from 1 to PTRDIFF_MAX, at a multiple of `align`, a power of two. `*zero`
 * tells whether it is known to hold zeroes. Null without memory. Smaller ones than HUGE_LEAST, too:
 * for alignments that slices don't have, and where there is no room for a superslab. In a hardened
 * heap `*found` tells that something wrote to the block, or to another one, while it was free. */
void *huge_take(size_t n, size_t align, bool *zero, struct finding *found);

/* Frees p. */
enum misuse huge_give(void *p);

/* The block that begins at p; null if none does. Its maker is MAKER_MALLOC at first, and huge_give
 * does not free those of another one. */
struct huge *huge_at(const void *p);

/* Bytes that the program may use of p, 0 if no such block begins at p. */
static inline size_t huge_usable(const void *p)
{
    const struct huge *h = huge_at(p);
    return h != NULL ? h->usable : 0;
}

/* Where the block begins that the slice of p names, perhaps above p; null if it names none. */
const void *huge_start(const void *p);

/* Makes p hold n bytes, more or fewer, without copying. The result is p or perhaps another address;
 * null when it can't be done that way, then nothing has changed. */
void *huge_resize(void *p, size_t n);

/* Bytes of dirty mappings. */
size_t huge_dirty(void);

/* The fewest bytes of huge blocks that were kept for reuse since the last call: what was not
 * needed. */
size_t huge_idle(void);

/* Gives up to `most` bytes kept for reuse back to the kernel, the oldest first; how many. */
size_t huge_purge(size_t most);

/* Of freed blocks with guards that keep or kept their pages, one to which something wrote since;
 * null where there is none, or that can't be told without waiting. */
void *huge_written(void);

/* Whether p, any address, is in memory of a freed huge block that is kept: for the next one, or
 * inaccessible. False too where that can't be told without waiting: for reports. */
bool huge_is_dirty(const void *p);

/* The big-block cache, for the accounting. */
struct huge_inside {
    struct list *dirty;
    size_t *forbidden_count; /* each has a descriptor */
    size_t *forbidden_bytes; /* of freed blocks with guards, which stay mapped without memory */
};
struct huge_inside huge_inside(void);

/* In a fork's child: a report may have been looking at what is kept, with its lock and no other. */
void huge_fork_child(void);

#endif

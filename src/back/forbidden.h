/* What of huge blocks (huge.h) nobody can touch: the pages around a block with guards, and freed
 * blocks. Those that were freed last stay mapped, without memory, so that no other mapping is there
 * soon. So does what the kernel refuses to unmap, until it does. */
#ifndef HAKMEM_BACK_FORBIDDEN_H
#define HAKMEM_BACK_FORBIDDEN_H

#include "base/defs.h"
#include "base/list.h"
#include "os/lock.h"

/* The descriptor of a huge block (huge.h), in use or free. */
struct huge {
    struct list node; /* among the dirty or the forbidden ones; lock: dirty */
    char *base;       /* the mapping's start, any page; whoever holds the block or the lock */
    size_t length;    /* bytes mapped, whole slices */
    size_t usable;    /* bytes the program may use, whole pages */
    size_t before;    /* bytes of its own mapping in front, inaccessible; 0: it has no guards */
    size_t mapped;    /* bytes of that mapping */
    uint8_t maker;    /* enum maker; atomic, whoever holds the block */
    bool marks;       /* what nobody can touch of its length is so by marks of the kernel
                         (os_guard_runs); else by the mapping */
};

/* Bytes of the mappings of all inaccessible blocks, or less under a limit of addresses; one that is
 * longer is unmapped at once. This bounds the address space that they take. Other numbers were not
 * measured. */
#define FORBIDDEN_BYTES (256 * MiB)

extern struct lock dirty_lock HIDDEN;

extern struct forbidden {
    struct list blocks; /* newest first; of one that can still be touched, `usable` is not 0 */
    size_t count, bytes;
    size_t could_stay; /* bytes of blocks that were asked about (forbidden_claims), ever */
    size_t claimed;    /* and how many of these blocks are to be here */
} forbidden HIDDEN;    /* lock: dirty */

/* Whether so many may be kept together. */
bool forbidden_fits(size_t bytes);

/* Whether a freed block of so many bytes that could keep its pages is to be shut all the same: the
 * first ones are, then one now and then. With the lock; each answer counts. */
bool forbidden_claims(size_t bytes);

/* Looks at one that kept its pages, zeroed, before they go: what something wrote would be lost. */
void forbidden_look(const struct huge *h);

/* Where one began that was written to then, the last since the last call; null if none was. */
void *forbidden_written(void);

/* A block's pages go back to the kernel, and for a while nobody can touch it. */
void forbidden_shut(struct huge *h);

/* One of the oldest, of such a length, whose first bytes can be touched now; null where there is
 * none among them, or few are kept: an address is not to return soon. */
struct huge *forbidden_take(size_t length, size_t usable);

/* Unmaps the oldest until there is room for so many bytes more. */
void forbidden_trim(size_t bytes);

/* Unmaps one that is not among them. False, and it is, where the kernel refuses. */
bool forbidden_unmap(struct huge *h);

/* ---- the pages around a block ----
 *
 * They are inaccessible by marks of the kernel, which change no mapping, or by the mapping. */

/* Bytes of the mapping of a block above 32 KiB up to which pages are made inaccessible by marks; of
 * larger ones by the mapping. Without marks, grep -f with 283,000 blocks of 96 KiB takes 2.3 s of
 * system time instead of 2.0; with marks up to 1 MiB, blocks of 64 KiB to 1 MiB take 0.77 s instead
 * of 0.60. */
#define MARKED_BYTES (128 * KiB)

#define HUGE_NAME "hakmem: huge block"

/* Maps `length` bytes at a multiple of `align` between guards, of which so many can be touched.
 * False without memory, or where so many mappings are divided by guards that the process might get
 * no more (vm.max_map_count). */
bool huge_guards_map(struct huge *h, size_t align, size_t usable);

/* So many bytes can be touched from now on, whole pages within the block's length. Those that come
 * are zero. False, and nothing has changed, where the kernel does not give more. */
bool huge_guards_move(struct huge *h, size_t usable);

/* Bytes of its mapping beside its length. */
static inline size_t huge_guards_length(const struct huge *h)
{
    return h->before != 0 ? h->mapped - h->length : 0;
}

/* For a while all of its mapping can be touched: so it is one to the kernel, which moves only such.
 * False where the kernel refuses. Then so many bytes can be, at most its length, and those that
 * come are zero. For guards that are no marks. */
bool huge_guards_lift(struct huge *h);
void huge_guards_lower(struct huge *h, size_t usable);

#endif

/* Freed blocks with guards (huge.h). Those that were freed last stay mapped, without memory, and
 * nobody can touch them, so that no other mapping is there soon. So does what the kernel refuses to
 * unmap, until it does. */
#ifndef HAKMEM_BACK_FORBIDDEN_H
#define HAKMEM_BACK_FORBIDDEN_H

#include "back/huge_block.h"
#include "os/lock.h"

/* Bytes of the mappings of all inaccessible blocks; one that is longer is unmapped at once. This
 * bounds the address space that they take. Other numbers were not measured. */
#define FORBIDDEN_BYTES (256 * MiB)

extern struct lock dirty_lock HIDDEN;

extern struct forbidden {
    struct list blocks; /* newest first; of one that can still be touched, `usable` is not 0 */
    size_t count, bytes;
    size_t could_stay; /* bytes of blocks that were asked about (forbidden_claims), ever */
    size_t claimed;    /* and how many of these blocks are to be here */
} forbidden HIDDEN;    /* lock: dirty */

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

#endif

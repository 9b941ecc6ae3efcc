/* Freed blocks with guards (huge.h). Those that were freed last stay mapped, without memory, and
 * nobody can touch them, so that no other mapping is there soon. So does what the kernel refuses to
 * unmap, until it does. */
#ifndef HAKMEM_BACK_FORBIDDEN_H
#define HAKMEM_BACK_FORBIDDEN_H

#include "back/huge_block.h"
#include "os/lock.h"

extern struct lock dirty_lock HIDDEN;

extern struct forbidden {
    struct list blocks; /* newest first; of one that can still be touched, `usable` is not 0 */
    size_t count, bytes;
} forbidden HIDDEN; /* lock: dirty */

/* The pages of a block go back to the kernel, and nobody can touch it. False, and it may still be
 * touched, where the kernel refuses. */
bool forbidden_close(struct huge *h);

/* Adds one that is closed, with `usable` 0, or that could not be unmapped. */
void forbidden_add(struct huge *h);

/* One of the oldest, of such a length, whose first bytes can be touched now; null where there is
 * none among them, or few are kept: an address is not to return soon. */
struct huge *forbidden_take(size_t length, size_t usable);

/* Unmaps the oldest until there is room for so many bytes more. */
void forbidden_trim(size_t bytes);

/* Unmaps one that is not among them. False, and it is, where the kernel refuses. */
bool forbidden_unmap(struct huge *h);

#endif

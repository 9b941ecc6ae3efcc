/* The inaccessible pages of a huge block (huge.h): by marks of the kernel, which change no mapping,
 * or by the mapping. */
#ifndef HAKMEM_BACK_HUGE_GUARDS_H
#define HAKMEM_BACK_HUGE_GUARDS_H

#include "back/huge_block.h"

/* Of a fresh block, whose whole length can be touched if it has marks, so many bytes can be. */
void huge_guards_start(struct huge *h, size_t usable);

/* So many bytes can be touched from now on, whole pages within the block's length. Those that come
 * are zero. False, and nothing has changed, where the kernel does not give more. */
bool huge_guards_move(struct huge *h, size_t usable);

/* The pages of a block go back to the kernel, and nobody can touch it. False, and it may still be
 * touched, where the kernel refuses. */
bool huge_guards_close(struct huge *h);

/* The first bytes of a closed one can be touched; false, and nobody can, where the kernel refuses.
 */
bool huge_guards_open(const struct huge *h, size_t usable);

#endif

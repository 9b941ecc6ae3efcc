/* The inaccessible pages of a huge block (huge.h): by marks of the kernel, which change no mapping,
 * or by the mapping. */
#ifndef HAKMEM_BACK_HUGE_GUARDS_H
#define HAKMEM_BACK_HUGE_GUARDS_H

#include "back/huge_block.h"

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

/* Unmaps it with its guards; false where the kernel refuses. */
bool huge_guards_unmap(const struct huge *h);

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

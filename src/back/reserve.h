/* The reserve: blocks for threads that find the heap held by a long fork (lock_enter). It has its
 * own regions and its own lock, which a fork does not take. A region goes back to the kernel when
 * its last block is freed. A child frees blocks of its parent's threads, but takes none from their
 * regions, because a thread that does not exist in the child may hold their lock and be changing
 * their data. The map does not know these blocks. Thread safe. */
#ifndef HAKMEM_BACK_RESERVE_H
#define HAKMEM_BACK_RESERVE_H

#include "base/defs.h"
#include "base/misuse.h"

/* A block of n bytes, n from 1 to 2^52, at a multiple of 16 and of `align`, a power of two up to
 * 2^52. Zero or not. Null without memory. */
void *reserve_take(size_t n, size_t align);

/* Frees p; MISUSE_FOREIGN where p is in no region. */
enum misuse reserve_give(void *p);

/* The bytes that were asked for of p; 0 if no block in use begins there. */
size_t reserve_usable(const void *p);

/* Gives back the regions whose blocks are all free: after a fork, and where all that is free goes
 * back, since the kernel may have refused before. */
void reserve_release(void);

/* After a fork in the child, whose only thread the caller is. */
void reserve_fork_child(void);

/* For the accounting: bytes of regions, and of them those in blocks. */
struct reserve_parts {
    size_t mapped, used;
};
struct reserve_parts reserve_parts(void);

#endif

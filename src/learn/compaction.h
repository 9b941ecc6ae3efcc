/* When a class compacts: blocks that the program frees in slabs that are mostly free pass by the
 * thread's stack, so they are not handed out again at once. New blocks then take the lowest free
 * places, and the slabs above become empty by the program's own turnover. Pure functions. */
#ifndef HAKMEM_LEARN_COMPACTION_H
#define HAKMEM_LEARN_COMPACTION_H

#include "learn/laws.h"

/* Whether slabs are thin that have so many blocks together, so many of them free: most are, that is
 * much memory, and a page has room for two or more, so that a few keep it from going back. */
static inline bool compaction_begins(size_t free, size_t blocks, size_t size, size_t page)
{
    return size * LAW_CLEARLY <= page && free * size > (size_t)LAW_CLEARLY * LAW_LITTLE &&
           free > blocks / LAW_CLEARLY;
}

/* Whether a block of one such slab passes by. */
static inline bool compaction_moves(size_t free, size_t blocks)
{
    return free > blocks / LAW_CLEARLY;
}

/* Whether so many frees in a row came without a malloc that the program only frees. Its blocks are
 * not taken again soon, and many together go back with less work through the stack, of which one in
 * LAW_FREES_A_LOOK is looked at. */
static inline bool compaction_waits(unsigned frees) { return frees >= LAW_FREES_A_LOOK; }

/* Whether so many frees in a row of blocks that stay show that it is done, or that it moves little.
 */
static inline bool compaction_ends(unsigned in_vain) { return in_vain >= LAW_FREES_A_LOOK; }

/* Whether so many blocks moved that it has left much empty. */
static inline bool compaction_gained(size_t moved, size_t size)
{
    return moved * size >= LAW_LITTLE / LAW_CLEARLY;
}

#endif

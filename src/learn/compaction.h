/* When a class compacts: blocks that the program frees in slabs that are mostly free go back to
 * them at once, so they are not handed out again. New blocks then take the lowest free places, and
 * the slabs above become empty by the program's own turnover. Pure functions. */
#ifndef HAKMEM_LEARN_COMPACTION_H
#define HAKMEM_LEARN_COMPACTION_H

#include "learn/laws.h"

/* Whether slabs are thin that have so many blocks together, so many of them free: most are, that is
 * much memory, and a page has room for two or more, so that a few keep it from going back. */
static inline bool compaction_begins(size_t free, size_t blocks, size_t size, size_t page)
{
    return size * 2 <= page && free * size > 2 * (size_t)LAW_LITTLE && free > blocks / 2;
}

/* Whether they no longer are, clearly. */
static inline bool compaction_ends(size_t free, size_t blocks, size_t size)
{
    return free * size <= LAW_LITTLE || free <= blocks / (2 * 2);
}

/* Whether one such slab is. */
static inline bool compaction_thin(size_t free, size_t blocks) { return free > blocks / 2; }

/* Whether a block of a slab is worth moving to a lower place, where the class has so many places
 * free in its begun slabs: these would fill another slab, and the slab is not much fuller than the
 * others. */
static inline bool compaction_moves(size_t free, size_t blocks, size_t all_free, size_t all_blocks)
{
    return free > 0 && all_free > blocks && free * 2 * all_blocks >= all_free * blocks;
}

/* Whether a sparse slab is worth a look: so many blocks were freed since the last one, and so many
 * are still taken. Near the end each block counts: with nine tenths of blocks of 512 bytes free at
 * random, one of 64 more brings a page of 16. */
static inline bool look_at_slab(unsigned freed, unsigned taken, bool thin)
{
    return freed * (thin ? 2 : LAW_SMALL_PART) >= taken;
}

#endif

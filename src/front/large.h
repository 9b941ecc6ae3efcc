/* Large blocks, of 5 to 32 slices, in the threads' stacks. One is as much memory as thousands of
 * small ones, so what limits a stack is bytes: all of a thread's together hold at most a part of
 * what the program ever used. A block that finds no room goes to its superslab, alone.
 *
 * For the owner. Only the slow path pushes and pops here, so it can count.
 *
 * And the age of all stacks: what nobody needed for a while leaves them. */
#ifndef HAKMEM_FRONT_LARGE_H
#define HAKMEM_FRONT_LARGE_H

#include "back/use.h"
#include "base/atomic.h"
#include "base/misuse.h"
#include "front/cache.h"

#define LARGE_OFFSET (size_t)((BIN_FIRST + CLASS_LARGE) * BIN_BYTES) /* of the first bin */
#define LARGE_OFFSETS_END (size_t)((BIN_FIRST + CLASSES) * BIN_BYTES)

/* A block of the bin's class to *p, or of the next one: what that has more is not touched. */
FAST bool large_pop(struct cache *cache, size_t offset, void **p)
{
    ASSERT(offset >= LARGE_OFFSET && offset < LARGE_OFFSETS_END);
    if (!cache_pop_whole(cache, offset, p)) {
        offset += BIN_BYTES;
        if (offset == LARGE_OFFSETS_END || !cache_pop_whole(cache, offset, p))
            return false;
    }
    cache->large_bytes -= class_of_offset(offset)->size;
    cache->large_used = true;
    return true;
}

/* False where there is no room. */
FAST bool large_push(struct cache *cache, unsigned cls, void *p)
{
    size_t bytes = cache->large_bytes + size_classes[cls].size;
    if (bytes > cache->large_most || !cache_push_whole(cache, cls, p))
        return false;
    cache->large_bytes = bytes;
    cache->large_used = true;
    return true;
}

/* With the cache's lock: a block from a superslab; null without memory. */
void *large_take(struct cache *cache, unsigned cls);

/* With the cache's lock: frees one. */
struct finding large_give(struct cache *cache, unsigned cls, void *p);

/* Frees all that the stacks hold. */
struct finding large_empty(struct cache *cache);

/* Frees what nobody needed for a while, in all stacks: of each stack of small blocks the older
 * half; of large blocks all, if none came or went since the last time. Those of other threads do so
 * when they next enter. */
struct finding stacks_age(struct cache *cache);

/* With the cache's lock, as its owner enters: that is made up for, and `use.stacked` has what the
 * stacks hold by now. What is missing there counts as memory in use. */
struct finding stacks_catch_up(struct cache *cache);

#endif

/* What the slow path does for memory that lies idle, after the call's own work and without locks.
 */
#ifndef HAKMEM_LIFE_UPKEEP_H
#define HAKMEM_LIFE_UPKEEP_H

#include "front/cache.h"
#include "life/life.h"
#include "life/profiling.h"
#include "life/purge.h"
#include "life/scavenger.h"

void give_memory_back(bool freed, size_t own);

/* After memory was freed by the calling thread, which has this cache or none. `own`: bytes of the
 * call's own block, if that is huge. */
void look_after(struct cache *cache, size_t own);

/* After memory was taken. What lies idle may be what the program has begun to take again, so mostly
 * only what is kept beyond what may be goes back. */
static inline void make_room(size_t own)
{
    guards_look();
    if (purge_is_due() && (use_excess() > 0 || use_grown() || soft_limit_waits()))
        give_memory_back(false, own);
}

/* What a thread that takes a block by the slow path has to note before. */
static inline void note_taker(struct cache *cache)
{
    scavenger_note(cache);
    if (unlikely(load_relaxed(&cache->mine) == NULL))
        thread_ask_for_end(cache);
}

#endif

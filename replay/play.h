/* Plays the operations of one thread. */
#ifndef REPLAY_PLAY_H
#define REPLAY_PLAY_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "replay/ops.h"

struct play {
    const struct op *ops;
    const struct ops_thread *threads;
    _Atomic(void *) *slots;
    pthread_t *running;  /* by the thread's number */
    atomic_ulong failed; /* allocations */
};

/* From the first operation to the last; starts the threads that it says, which play theirs. False:
 * a thread could not be started. */
bool play_thread(struct play *play, uint32_t thread);

#endif

/* The order that threads keep: an epoch begins when all that have a part in the one before have
 * done it. */
#ifndef REPLAY_EPOCHS_H
#define REPLAY_EPOCHS_H

#include <stdbool.h>
#include <stdint.h>

#include "replay/ops.h"

/* Of `count` epochs; what was measured goes to `results`. None ends sooner than in the recording at
 * this speed, in thousandths; 0: as fast as possible. False: no memory. */
bool epochs_begin(const struct ops_epoch *epochs, uint32_t count, struct result_epoch *results,
                  uint64_t speed);

/* Waits for the epoch to begin. */
void epoch_wait(uint32_t number);

/* The calling thread has done its part. */
void epoch_part_done(uint32_t number);

/* ns since epochs_begin. */
uint64_t epochs_time(void);

#endif

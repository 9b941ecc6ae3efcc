/* Recorded calls. While the program is recorded (life/recording.h), malloc and free are closed, so
 * each call takes the slow path, and comes here first: the call is served as without a recording,
 * and an event is written to the thread's tape. While nothing is recorded, nothing of this costs
 * malloc or free an instruction where these take the fast path. */
#ifndef HAKMEM_API_RECORDED_H
#define HAKMEM_API_RECORDED_H

#include "base/atomic.h"
#include "record/paths.h"

/* Whether this call is to be recorded, which then ends with recorded_end. False also where it is
 * part of one that is. */
bool recorded_begin(void);

/* What was done. Preserves errno. */
void recorded_end(enum event_kind kind, void *p, size_t n, size_t align, struct caller from);

/* realloc of `former` became p; null where it failed. */
void recorded_end_realloc(const void *former, void *p, size_t n, struct caller from);

/* A free, which needs no begin and no end: p is about to be freed. */
void recorded_free(const void *p);

#endif

/* The one slow path, for everything rare. The fast bodies in malloc.c enter it by a tail call. */
#ifndef HAKMEM_API_SLOW_H
#define HAKMEM_API_SLOW_H

#include "api/blocks.h"
#include "base/defs.h"
#include "learn/keep.h"
#include "record/paths.h"

/* Whether realloc leaves a block of so many bytes where it is: it holds n, and they fill more than
 * half. An even number, or 0 for a block that is not known. */
FAST bool stays(size_t n, size_t usable)
{
    size_t half = keep_block_least(usable);
    return n - half - 1 < half;
}

/* Each returns what the public function of that name returns, errno included. */
void *slow_malloc(size_t n);
void *slow_calloc(size_t n);
void slow_free(void *p);
void *slow_realloc(void *p, size_t n, size_t usable); /* 0 where that is not known */
void *slow_aligned(size_t align, size_t n);

/* realloc leaves a plain block of so many bytes where it is. */
bool plain_stays(size_t n, size_t usable);

/* As slow_free, for a call from there, and not recorded by itself. */
void slow_free_from(void *p, const void *caller);

/* slow_aligned, for a function of ours that was called from there. */
void *slow_aligned_for(size_t align, size_t n, struct caller from);

/* The same past the thread's stacks, for blocks of slabs (front/refill.h). */
void *slow_malloc_past(size_t n);
void slow_free_past(void *p, const void *caller);

/* free with the size, and the alignment, that the program says p was allocated with. They are never
 * trusted: p goes where the map says. As free's fast body enters slow_free, theirs enter these.
 * With check_sizes they always do, since all stacks are closed to frees (front/cache.h). */
void slow_free_sized(void *p, size_t size);
void slow_free_aligned_sized(void *p, size_t align, size_t size);

/* Bytes of a page, as the kernel says. */
size_t page_size(void);

/* ---- recorded calls ----
 *
 * While the program is recorded (life/recording.h), malloc and free are closed, so each call takes
 * the slow path: it is served as without a recording, and an event is written to the thread's tape
 * (recorded.c). While nothing is recorded, nothing of this costs malloc or free an instruction
 * where these take the fast path. */

/* Whether this call is to be recorded, which then ends with recorded_end. False also where it is
 * part of one that is. */
bool recorded_begin(void);

/* What was done. Preserves errno. */
void recorded_end(enum event_kind kind, void *p, size_t n, size_t align, struct caller from);

/* realloc of `former` became p; null where it failed. */
void recorded_end_realloc(const void *former, void *p, size_t n, struct caller from);

/* A free, which needs no begin and no end: p is about to be freed. */
void recorded_free(const void *p);

/* ---- calls with a name ----
 *
 * Calls of malloc and its relatives to which the program gives a name, for heap profiles
 * (malloc.c). Their fast bodies are those without a name. The slow path gets the name by a variable
 * of the thread, and only while a profile is on: nothing else costs an instruction more. */

/* A name is a string; or this one, which stands for "token NUMBER". Null is no name. */
extern const char by_token[] HIDDEN;

/* As slow_aligned, under the name. `token` matters with by_token alone. */
void *slow_aligned_named(size_t align, size_t n, const char *name, size_t token);

/* Around any other call: what this thread allocates from name_begin to name_end has the name. */
struct name_text {
    char text[32];
};
void name_begin(struct name_text *room, const char *name, size_t token);
void name_end(void);

#endif

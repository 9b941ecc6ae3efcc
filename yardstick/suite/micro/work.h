/*
 * What the rows of the group do. A row's own meaning of a parameter stands
 * with its function; the rest is as suite.h says.
 */
#ifndef MICRO_WORK_H
#define MICRO_WORK_H

#include "suite.h"

/* work_pair.c: a block taken, touched and given back at once. */
void work_pair_touched(const struct params *p, struct outcome *out);
/* free of a null pointer: the call and nothing else. */
void work_free_null(const struct params *p, struct outcome *out);

/* work_resize.c: `slots` buffers in turn; an operation is one call. */
/* Grow by `batch` bytes, or double if it is 0, from min to max; then freed and begun anew. */
void work_grow(const struct params *p, struct outcome *out);
/* Halve from max down to min; then freed and begun anew. */
void work_shrink(const struct params *p, struct outcome *out);
/* Asked for the size they have. */
void work_resize_same(const struct params *p, struct outcome *out);

/* work_kinds.c */
/* calloc, touched, free: memory that was in use before. */
void work_calloc(const struct params *p, struct outcome *out);
/* `slots` blocks, all kept: memory that never was in use. Once, whatever the iterations. */
void work_calloc_fresh(const struct params *p, struct outcome *out);
/* posix_memalign to `batch` bytes: `slots` taken, then all freed. */
void work_aligned(const struct params *p, struct outcome *out);
/* malloc_usable_size of `slots` blocks in turn. */
void work_usable(const struct params *p, struct outcome *out);

/* work_fill.c: `slots` blocks taken, then all freed in that order; what the first round takes is a
 * figure of its own. */
void work_fill_free(const struct params *p, struct outcome *out);

/* work_lives.c: an operation is one life, from the call that begins it until it has been waited
 * for. */
void work_thread_idle(const struct params *p, struct outcome *out);
/* Each thread takes `slots` blocks and frees them. */
void work_thread_start(const struct params *p, struct outcome *out);
/* What the first malloc of a thread takes, by the thread's own clock. */
void work_thread_first(const struct params *p, struct outcome *out);
/* With `slots` blocks alive; the child takes and frees `batch` more. */
void work_fork(const struct params *p, struct outcome *out);

#endif

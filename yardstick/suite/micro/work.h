/*
 * What the rows of the group do. A row's own meaning of a parameter stands
 * with its function; the rest is as suite.h says.
 */
#ifndef MICRO_WORK_H
#define MICRO_WORK_H

#include "suite.h"

/* work_pair.c: a block taken, touched and given back at once. */
work_fn work_pair_touched;
/* free of a null pointer: the call and nothing else. */
work_fn work_free_null;

/* work_resize.c: `slots` buffers in turn; an operation is one call. */
/* Grow by `batch` bytes, or double if it is 0, from min to max; then freed and begun anew. */
work_fn work_grow;
/* Halve from max down to min; then freed and begun anew. */
work_fn work_shrink;
/* Asked for the size they have. */
work_fn work_resize_same;

/* work_kinds.c */
/* calloc, touched, free: memory that was in use before. */
work_fn work_calloc;
/* `slots` blocks, all kept: memory that never was in use. Once, whatever the iterations. */
work_fn work_calloc_fresh;
/* posix_memalign to `batch` bytes: `slots` taken, then all freed. */
work_fn work_aligned;
/* malloc_usable_size of `slots` blocks in turn. */
work_fn work_usable;

/* work_fill.c: `slots` blocks taken, then all freed in that order; what the first round takes is a
 * figure of its own. */
work_fn work_fill_free;

/* work_lives.c: an operation is one life, from the call that begins it until it has been waited
 * for. */
work_fn work_thread_idle;
/* Each thread takes `slots` blocks and frees them. */
work_fn work_thread_start;
/* What the first malloc of a thread takes, by the thread's own clock. */
work_fn work_thread_first;
/* With `slots` blocks alive; the child takes and frees `batch` more. */
work_fn work_fork;

#endif

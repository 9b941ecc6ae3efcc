/*
 * What the two floors share. A floor is not an allocator: while the measured
 * loop runs it does as little as a malloc can, so that a row's time under it
 * is the row's own. Outside of the loop every block comes from a region that
 * only grows, so that what the C library keeps (thread vectors, stream
 * buffers) stays whole.
 *
 *   ring.c       blocks from a small ring; no free
 *   nothing.c    one fixed block; no free
 *   setup.c      the region that only grows, and the rest of the interface
 */
#ifndef FLOOR_H
#define FLOOR_H

#include <stddef.h>

#define FLOOR_EXPORT __attribute__((visibility("default")))
#define LIKELY(x) __builtin_expect(!!(x), 1)

/* A block of the growing region, zeroed; null and ENOMEM when there is none. */
void *setup_take(size_t size);
void *setup_take_aligned(size_t alignment, size_t size);

/* Address space without memory behind it until touched; null when refused. */
void *floor_reserve(size_t bytes);

/*
 * Called by the measured program, by name, around its measured loop: `live`
 * is what one of its `threads` threads holds, `largest` the largest block it
 * asks for, both in bytes.
 */
FLOOR_EXPORT void floor_measure_begin(size_t live, size_t largest, unsigned threads);
FLOOR_EXPORT void floor_measure_end(void);

#endif

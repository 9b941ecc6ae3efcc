/*
 * The floor of calls: while the measured loop runs, malloc gives back one
 * fixed block and free returns at once. What is left of a row's time is its
 * own work, and two calls through the linker's table. Each thread has a block
 * of its own, since writing to one line from two cores would cost more than
 * any allocator.
 */
#include "floor.h"

#include <stdatomic.h>

/* As large as the largest block of any row; only its touched pages exist. */
enum { FIXED_BYTES = 64 << 20, MOST_BLOCKS = 64 };

/* owner; initial-exec, as a preloaded library may and a fast one must. */
static _Thread_local char *fixed __attribute__((tls_model("initial-exec")));

static char *blocks;           /* written before the threads of the loop run; else null */
static unsigned block_count;   /* the same */
static _Atomic unsigned taken; /* atomic; blocks given to threads */

static __attribute__((noinline)) void *first_call(size_t size)
{
    if (blocks == NULL)
        return setup_take(size);
    fixed = blocks + (size_t)(atomic_fetch_add(&taken, 1) % block_count) * FIXED_BYTES;
    return fixed;
}

FLOOR_EXPORT void *malloc(size_t size)
{
    char *block = fixed;
    if (LIKELY(block != NULL))
        return block;
    return first_call(size);
}

FLOOR_EXPORT void free(void *block) { (void)block; }

FLOOR_EXPORT void floor_measure_begin(size_t live, size_t largest, unsigned threads)
{
    (void)live;
    (void)largest;
    block_count = threads < MOST_BLOCKS ? threads : MOST_BLOCKS;
    blocks = floor_reserve((size_t)block_count * FIXED_BYTES);
}

FLOOR_EXPORT void floor_measure_end(void)
{
    blocks = NULL;
    fixed = NULL;
}

/*
 * The floor of a malloc that bumps: it moves a cursor through a ring, and free
 * does nothing. The ring holds what the row holds, but no more than 256 KiB,
 * since an allocator that hands out again what was freed last stays as near:
 * a ring of the full size walks through all of it, and rows that replace
 * blocks then ran slower on the floor than on allocators. Blocks still in use
 * are handed out again when the cursor comes round: the rows that a floor runs
 * read none of what they wrote.
 */
#include "floor.h"

#include <errno.h>
#include <stdatomic.h>

enum { SMALLEST_RING = 16 * 1024, LARGEST_RING = 256 * 1024, MOST_RINGS = 64 };

struct cursor {
    char *next;
    char *end;
};

/* owner; initial-exec, as a preloaded library may and a fast one must. */
static _Thread_local struct cursor cursor __attribute__((tls_model("initial-exec")));

static char *rings;            /* written before the threads of the loop run it */
static size_t ring_bytes;      /* the same; 0 outside of the loop */
static unsigned ring_count;    /* the same */
static _Atomic unsigned taken; /* atomic; rings given to threads */

static __attribute__((noinline)) void *ring_turn(size_t size)
{
    if (ring_bytes == 0)
        return setup_take(size);
    if (size > ring_bytes) {
        errno = ENOMEM;
        return NULL;
    }
    if (cursor.end == NULL) /* a new thread takes over the ring of one that is gone */
        cursor.end = rings + (atomic_fetch_add(&taken, 1) % ring_count + 1) * ring_bytes;
    char *block = cursor.end - ring_bytes;
    cursor.next = block + ((size + 15) & ~(size_t)15);
    return block;
}

FLOOR_EXPORT void *malloc(size_t size)
{
    char *block = cursor.next;
    /* What is left is a multiple of 16, so the rounded size fits if this does. */
    if (LIKELY((size_t)(cursor.end - block) >= size)) {
        if (LIKELY(block != NULL)) {
            cursor.next = block + ((size + 15) & ~(size_t)15);
            return block;
        }
    }
    return ring_turn(size);
}

FLOOR_EXPORT void free(void *block) { (void)block; }

FLOOR_EXPORT void floor_measure_begin(size_t live, size_t largest, unsigned threads)
{
    size_t bytes = SMALLEST_RING;
    while ((bytes < live && bytes < LARGEST_RING) || bytes < largest)
        bytes *= 2;
    ring_count = threads < MOST_RINGS ? threads : MOST_RINGS;
    rings = floor_reserve(bytes * ring_count);
    ring_bytes = rings != NULL ? bytes : 0;
}

FLOOR_EXPORT void floor_measure_end(void)
{
    ring_bytes = 0;
    cursor = (struct cursor){0};
}

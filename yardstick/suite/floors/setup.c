/*
 * The region that only grows, and every entry point that the measured loops
 * of the floors' rows don't call. Each block is preceded by its size.
 */
#include "floor.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

enum { HEADER = 16 };
static const size_t region_bytes = (size_t)4 << 30;

static _Atomic(char *) region; /* atomic; set once */
static _Atomic size_t used;    /* atomic; bytes of the region given out */

void *floor_reserve(size_t bytes)
{
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                   -1, 0);
    return p != MAP_FAILED ? p : NULL;
}

static char *region_get(void)
{
    char *base = atomic_load_explicit(&region, memory_order_acquire);
    if (LIKELY(base != NULL))
        return base;
    char *made = floor_reserve(region_bytes);
    if (made == NULL)
        return NULL;
    if (atomic_compare_exchange_strong(&region, &base, made))
        return made;
    munmap(made, region_bytes); /* another thread was first */
    return base;
}

void *setup_take_aligned(size_t alignment, size_t size)
{
    char *base = region_get();
    if (alignment < HEADER)
        alignment = HEADER;
    if (base == NULL || size > region_bytes || alignment > region_bytes) {
        errno = ENOMEM;
        return NULL;
    }
    size_t room = (size + HEADER + alignment - 1 + 15) & ~(size_t)15;
    size_t at = atomic_fetch_add_explicit(&used, room, memory_order_relaxed);
    if (at + room > region_bytes) {
        errno = ENOMEM;
        return NULL;
    }
    uintptr_t block = ((uintptr_t)base + at + HEADER + alignment - 1) & ~(uintptr_t)(alignment - 1);
    ((size_t *)block)[-1] = size;
    return (void *)block;
}

void *setup_take(size_t size) { return setup_take_aligned(HEADER, size); }

static int setup_holds(const void *block)
{
    uintptr_t base = (uintptr_t)atomic_load_explicit(&region, memory_order_relaxed);
    return base != 0 && (uintptr_t)block - base < region_bytes;
}

FLOOR_EXPORT void *calloc(size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) {
        errno = ENOMEM;
        return NULL;
    }
    return setup_take(bytes);
}

/* Content is kept for blocks of the region alone: a block of the loop has no
 * size written anywhere, and no row that needs realloc runs on a floor. */
FLOOR_EXPORT void *realloc(void *block, size_t size)
{
    void *fresh = setup_take(size);
    if (block != NULL && fresh != NULL && setup_holds(block)) {
        size_t old = ((size_t *)block)[-1];
        memcpy(fresh, block, old < size ? old : size);
    }
    return fresh;
}

FLOOR_EXPORT void *memalign(size_t alignment, size_t size)
{
    size_t power = HEADER;
    while (power < alignment && power < region_bytes)
        power *= 2;
    return setup_take_aligned(power, size);
}

FLOOR_EXPORT void *aligned_alloc(size_t alignment, size_t size)
{
    return memalign(alignment, size);
}

FLOOR_EXPORT int posix_memalign(void **to, size_t alignment, size_t size)
{
    if (alignment < sizeof(void *) || (alignment & (alignment - 1)) != 0)
        return EINVAL;
    int saved = errno;
    void *block = setup_take_aligned(alignment, size);
    errno = saved;
    if (block == NULL)
        return ENOMEM;
    *to = block;
    return 0;
}

FLOOR_EXPORT size_t malloc_usable_size(void *block)
{
    return block != NULL && setup_holds(block) ? ((size_t *)block)[-1] : 0;
}

/* The fast bodies of the public functions, and their names.
 *
 *   malloc -> cache_pop, else slow_malloc        free -> cache_push, else slow_free
 *
 * What these two execute is counted, and the counts are a test: see tests/golden. */
#include <errno.h>
#include <string.h>

#include "api/slow.h"
#include "base/policy.h"
#include "front/cache.h"
#include "hakmem/hakmem.h"
#include "report/backtrace.h"

#define EXPORT __attribute__((visibility("default")))

EXPORT void *hakmem_malloc(size_t n)
{
    void *p;
    return likely(malloc_pop(n, &p)) ? p : slow_malloc(n);
}

EXPORT void hakmem_free(void *p)
{
    if (unlikely(!cache_push(cache_current(), p)))
        slow_free(p);
}

EXPORT void *hakmem_calloc(size_t count, size_t size)
{
    size_t n;
    void *p;
    if (unlikely(__builtin_mul_overflow(count, size, &n)))
        n = SIZE_MAX;
    return likely(malloc_pop(n, &p)) ? memset(p, 0, n) : slow_calloc(n);
}

EXPORT void *hakmem_realloc(void *p, size_t n)
{
    size_t size = cache_block_size(cache_current(), p);
    return likely(stays(n, size)) ? p : slow_realloc(p, n, size);
}

EXPORT void *hakmem_reallocarray(void *p, size_t count, size_t size)
{
    size_t n;
    if (unlikely(__builtin_mul_overflow(count, size, &n))) {
        errno = ENOMEM;
        return NULL;
    }
    return hakmem_realloc(p, n);
}

/* A wrong size is no reason to free another block: the map knows the class. */
EXPORT void hakmem_free_sized(void *p, size_t n)
{
    if (unlikely(!cache_push(cache_current(), p)))
        slow_free_sized(p, n);
}

EXPORT void hakmem_free_aligned_sized(void *p, size_t align, size_t n)
{
    if (unlikely(!cache_push(cache_current(), p)))
        slow_free_aligned_sized(p, align, n);
}

EXPORT size_t hakmem_malloc_usable_size(const void *p)
{
    size_t size = cache_block_size(cache_current(), p);
    if (likely(size != 0) || p == NULL)
        return size;
    return block_usable(p, "malloc_usable_size", RETURN_ADDRESS);
}

EXPORT size_t hakmem_object_size(const void *p)
{
    return block_bytes_from(p, "malloc_object_size", RETURN_ADDRESS);
}

EXPORT void *hakmem_aligned_alloc(size_t align, size_t n)
{
    if (!is_power_of_two(align)) {
        errno = EINVAL;
        return NULL;
    }
    void *p;
    return likely(aligned_pop(align, n, &p)) ? p : slow_aligned(align, n);
}

EXPORT void *hakmem_memalign(size_t align, size_t n)
{
    if (align > (size_t)PTRDIFF_MAX + 1) {
        errno = EINVAL;
        return NULL;
    }
    if (!is_power_of_two(align))
        align = align == 0 ? 1 : (size_t)1 << (highest_bit(align) + 1);
    void *p;
    return likely(aligned_pop(align, n, &p)) ? p : slow_aligned(align, n);
}

EXPORT int hakmem_posix_memalign(void **result, size_t align, size_t n)
{
    if (!is_power_of_two(align) || align % sizeof(void *) != 0)
        return EINVAL;
    void *p;
    if (likely(aligned_pop(align, n, &p))) {
        *result = p;
        return 0;
    }
    p = slow_aligned(align, n);
    if (p == NULL)
        return ENOMEM; /* errno has it too, as with glibc */
    *result = p;
    return 0;
}

EXPORT void *hakmem_valloc(size_t n) { return slow_aligned(page_size(), n); }

EXPORT void *hakmem_pvalloc(size_t n)
{
    size_t page = page_size();
    if (n > PTRDIFF_MAX)
        return slow_aligned(page, n);
    return slow_aligned(page, n == 0 ? page : round_up(n, page));
}

/* The names that programs call, and glibc's other exported names for them. */
#ifdef HAKMEM_OVERRIDE
#define ALIAS(name) __attribute__((alias(#name), copy(name), visibility("default")))
void *malloc(size_t n) ALIAS(hakmem_malloc);
void free(void *p) ALIAS(hakmem_free);
void *calloc(size_t count, size_t size) ALIAS(hakmem_calloc);
void *realloc(void *p, size_t n) ALIAS(hakmem_realloc);
void *aligned_alloc(size_t align, size_t n) ALIAS(hakmem_aligned_alloc);
void *memalign(size_t align, size_t n) ALIAS(hakmem_memalign);
void *valloc(size_t n) ALIAS(hakmem_valloc);
void *pvalloc(size_t n) ALIAS(hakmem_pvalloc);
int posix_memalign(void **result, size_t align, size_t n) ALIAS(hakmem_posix_memalign);
size_t malloc_usable_size(void *p) ALIAS(hakmem_malloc_usable_size);
size_t malloc_object_size(const void *p) ALIAS(hakmem_object_size);
void *reallocarray(void *p, size_t count, size_t size) ALIAS(hakmem_reallocarray);
void free_sized(void *p, size_t n) ALIAS(hakmem_free_sized);
void free_aligned_sized(void *p, size_t align, size_t n) ALIAS(hakmem_free_aligned_sized);
void cfree(void *p) ALIAS(hakmem_free);
void *__libc_malloc(size_t n) ALIAS(hakmem_malloc);
void __libc_free(void *p) ALIAS(hakmem_free);
void *__libc_calloc(size_t count, size_t size) ALIAS(hakmem_calloc);
void *__libc_realloc(void *p, size_t n) ALIAS(hakmem_realloc);
void *__libc_reallocarray(void *p, size_t count, size_t size) ALIAS(hakmem_reallocarray);
void *__libc_memalign(size_t align, size_t n) ALIAS(hakmem_memalign);
void *__libc_valloc(size_t n) ALIAS(hakmem_valloc);
void *__libc_pvalloc(size_t n) ALIAS(hakmem_pvalloc);
int __posix_memalign(void **result, size_t align, size_t n) ALIAS(hakmem_posix_memalign);

/* Of cxx.cc, where that is linked in. */
HIDDEN void sized_deletes_check(void) __attribute__((weak));

/* The start comes as the program is loaded, before main can install a filter of system calls that
 * forbids what the start needs. */
static __attribute__((constructor)) void start_when_loaded(void)
{
    page_size();
    backtrace_start();
    if (unlikely(hardening.sizes) && sized_deletes_check != NULL)
        sized_deletes_check();
}

/* A statically linked program gets the extensions together with malloc, even if a later object
 * needs them: glibc's extensions would add glibc's malloc. */
static int (*const whole_family)(int, int) __attribute__((used)) = hakmem_mallopt;
#endif

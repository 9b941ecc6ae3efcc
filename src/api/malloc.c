/* The fast bodies of the public functions, and their names.
 *
 *   malloc -> cache_pop, else slow_malloc        free -> cache_push, else slow_free
 *
 * What these two execute is counted, and the counts are a test: see tests/golden.
 *
 * Also the same functions for calls that have a name in heap profiles: the program's own
 * (hakmem_malloc_at), or the token that Clang's -fsanitize=alloc-token gives each call
 * (__alloc_token_malloc). Those of C++ are in cxx.cc. */
#include <errno.h>
#include <string.h>

#include "api/sampled.h"
#include "api/slow.h"
#include "base/policy.h"
#include "base/text.h"
#include "front/cache.h"
#include "hakmem/hakmem.h"
#include "os/backtrace.h"

#define EXPORT __attribute__((visibility("default")))

/* ---- the slow path of calls with a name ---- */

const char by_token[] = "token ";

SLOW void name_begin(struct name_text *room, const char *name, size_t token)
{
    if (!closed_for(CLOSED_PROFILED) || name == NULL)
        return;
    if (name == by_token) {
        text_of(room->text, sizeof room->text, "%s%zu", by_token, token);
        name = room->text;
    }
    struct sampler *sampler = sampler_mine();
    if (sampler != NULL)
        sampler->name = name;
}

SLOW void name_end(void)
{
    struct sampler *sampler = cache_current()->sampler;
    if (sampler != NULL)
        sampler->name = NULL;
}

/* What a call returns that is made under the name. */
#define UNDER_NAME(call, name, token)   \
    ({                                  \
        struct name_text room;          \
        name_begin(&room, name, token); \
        __auto_type returned = call;    \
        name_end();                     \
        returned;                       \
    })

/* The slow path of such a call. */
#define SLOW_NAMED(call) \
    (likely(!closed_for(CLOSED_PROFILED)) ? (call) : UNDER_NAME(call, name, token))

static SLOW void *slow_malloc_named(size_t n, const char *name, size_t token)
{
    return SLOW_NAMED(slow_malloc(n));
}

static SLOW void *slow_calloc_named(size_t n, const char *name, size_t token)
{
    return SLOW_NAMED(slow_calloc(n));
}

static SLOW void *slow_realloc_named(void *p, size_t n, size_t usable, const char *name,
                                     size_t token)
{
    return SLOW_NAMED(slow_realloc(p, n, usable));
}

SLOW void *slow_aligned_named(size_t align, size_t n, const char *name, size_t token)
{
    return SLOW_NAMED(slow_aligned(align, n));
}

/* ---- the fast bodies ----
 *
 * With a name or, where it is null, without. Of most that is known where they are compiled, and
 * costs nothing. */

FAST void *malloc_named(size_t n, const char *name, size_t token)
{
    void *p;
    if (likely(malloc_pop(n, &p)))
        return p;
    return name == NULL ? slow_malloc(n) : slow_malloc_named(n, name, token);
}

FAST void *calloc_named(size_t count, size_t size, const char *name, size_t token)
{
    size_t n;
    void *p;
    if (unlikely(__builtin_mul_overflow(count, size, &n)))
        n = SIZE_MAX;
    if (likely(malloc_pop(n, &p)))
        return memset(p, 0, n);
    return name == NULL ? slow_calloc(n) : slow_calloc_named(n, name, token);
}

FAST void *realloc_named(void *p, size_t n, const char *name, size_t token)
{
    size_t size = cache_block_size(cache_current(), p);
    if (likely(stays(n, size)))
        return p;
    return name == NULL ? slow_realloc(p, n, size) : slow_realloc_named(p, n, size, name, token);
}

FAST void *reallocarray_named(void *p, size_t count, size_t size, const char *name, size_t token)
{
    size_t n;
    if (unlikely(__builtin_mul_overflow(count, size, &n))) {
        errno = ENOMEM;
        return NULL;
    }
    return realloc_named(p, n, name, token);
}

FAST void *aligned_named(size_t align, size_t n, const char *name, size_t token)
{
    if (!is_power_of_two(align)) {
        errno = EINVAL;
        return NULL;
    }
    void *p;
    if (likely(aligned_pop(align, n, &p)))
        return p;
    return name == NULL ? slow_aligned(align, n) : slow_aligned_named(align, n, name, token);
}

EXPORT void *hakmem_malloc(size_t n) { return malloc_named(n, NULL, 0); }

EXPORT void hakmem_free(void *p)
{
    if (unlikely(!cache_push(cache_current(), p)))
        slow_free(p);
}

EXPORT void *hakmem_calloc(size_t count, size_t size) { return calloc_named(count, size, NULL, 0); }

EXPORT void *hakmem_realloc(void *p, size_t n) { return realloc_named(p, n, NULL, 0); }

EXPORT void *hakmem_reallocarray(void *p, size_t count, size_t size)
{
    return reallocarray_named(p, count, size, NULL, 0);
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
    return aligned_named(align, n, NULL, 0);
}

EXPORT void *hakmem_memalign(size_t align, size_t n)
{
    if (!is_power_of_two(align) && align <= (size_t)PTRDIFF_MAX + 1)
        align = align == 0 ? 1 : (size_t)1 << (highest_bit(align) + 1);
    return aligned_named(align, n, NULL, 0);
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

/* ---- the same with a name ---- */

EXPORT void *hakmem_malloc_at(size_t n, const char *site) { return malloc_named(n, site, 0); }

EXPORT void *hakmem_calloc_at(size_t count, size_t size, const char *site)
{
    return calloc_named(count, size, site, 0);
}

EXPORT void *hakmem_realloc_at(void *p, size_t n, const char *site)
{
    return realloc_named(p, n, site, 0);
}

EXPORT void *hakmem_aligned_alloc_at(size_t align, size_t n, const char *site)
{
    return aligned_named(align, n, site, 0);
}

#ifdef HAKMEM_OVERRIDE

EXPORT void *__alloc_token_malloc(size_t n, size_t token)
{
    return malloc_named(n, by_token, token);
}

EXPORT void *__alloc_token_calloc(size_t count, size_t size, size_t token)
{
    return calloc_named(count, size, by_token, token);
}

EXPORT void *__alloc_token_realloc(void *p, size_t n, size_t token)
{
    return realloc_named(p, n, by_token, token);
}

EXPORT void *__alloc_token_reallocarray(void *p, size_t count, size_t size, size_t token)
{
    return reallocarray_named(p, count, size, by_token, token);
}

EXPORT void *__alloc_token_aligned_alloc(size_t align, size_t n, size_t token)
{
    return aligned_named(align, n, by_token, token);
}

/* Rare ones, each around the function without a token. */

EXPORT void *__alloc_token_memalign(size_t align, size_t n, size_t token)
{
    return UNDER_NAME(hakmem_memalign(align, n), by_token, token);
}

EXPORT int __alloc_token_posix_memalign(void **result, size_t align, size_t n, size_t token)
{
    return UNDER_NAME(hakmem_posix_memalign(result, align, n), by_token, token);
}

EXPORT void *__alloc_token_valloc(size_t n, size_t token)
{
    return UNDER_NAME(hakmem_valloc(n), by_token, token);
}

EXPORT void *__alloc_token_pvalloc(size_t n, size_t token)
{
    return UNDER_NAME(hakmem_pvalloc(n), by_token, token);
}

/* ---- the names that programs call, and glibc's other exported names for them ---- */

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

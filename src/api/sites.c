/* malloc and its relatives for calls that have a name in heap profiles: the program's own
 * (hakmem_malloc_at), or the token that Clang's -fsanitize=alloc-token gives each call
 * (__alloc_token_malloc). Those of C++ are in cxx_hints.cc. */
#include <errno.h>
#include <string.h>

#include "api/sampled.h"
#include "api/slow.h"
#include "base/policy.h"
#include "base/text.h"
#include "front/cache.h"
#include "hakmem/hakmem.h"
#include "profile/rate.h"

#define EXPORT __attribute__((visibility("default")))

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

/* The fast bodies are those of malloc.c. */

FAST void *malloc_named(size_t n, const char *name, size_t token)
{
    void *p;
    return likely(malloc_pop(n, &p)) ? p : slow_malloc_named(n, name, token);
}

FAST void *calloc_named(size_t count, size_t size, const char *name, size_t token)
{
    size_t n;
    void *p;
    if (unlikely(__builtin_mul_overflow(count, size, &n)))
        n = SIZE_MAX;
    return likely(malloc_pop(n, &p)) ? memset(p, 0, n) : slow_calloc_named(n, name, token);
}

FAST void *realloc_named(void *p, size_t n, const char *name, size_t token)
{
    size_t size = cache_block_size(cache_current(), p);
    return likely(stays(n, size)) ? p : slow_realloc_named(p, n, size, name, token);
}

FAST void *aligned_named(size_t align, size_t n, const char *name, size_t token)
{
    if (!is_power_of_two(align)) {
        errno = EINVAL;
        return NULL;
    }
    void *p;
    return likely(aligned_pop(align, n, &p)) ? p : slow_aligned_named(align, n, name, token);
}

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

/* ---- Clang's tokens ---- */

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
    size_t n;
    if (unlikely(__builtin_mul_overflow(count, size, &n))) {
        errno = ENOMEM;
        return NULL;
    }
    return realloc_named(p, n, by_token, token);
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

/* In an archive, who takes these from here must take malloc and free from here, too. */
void *malloc(size_t);
static void *(*const malloc_too)(size_t) __attribute__((used)) = malloc;
#endif

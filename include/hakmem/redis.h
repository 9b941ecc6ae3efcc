/** \file
 * Active defragmentation of redis and valkey with hakmem, without a change to their sources:
 *
 *     make MALLOC=libc REDIS_CFLAGS="$(pkg-config --cflags hakmem-redis)" \
 *         REDIS_LDFLAGS="$(pkg-config --libs hakmem-redis)"
 *
 * makes a server that accepts `activedefrag yes`. The servers know only their own jemalloc for
 * that. The compiler reads this header before each of their files (-include), and finds hakmem's
 * functions under the names that jemalloc's would have. Other functions are the servers' own, which
 * without jemalloc find nothing to do: the linker takes those of this header in their place
 * (--wrap), which it can't do with link-time optimization. Files of other libraries that a server
 * is built with are left as they are.
 *
 * Tried with redis 7.0.15 and 8.0.2 and valkey 8.1.1: docs/guide/servers.md. Since 0.1.
 */
#ifndef HAKMEM_REDIS_H
#define HAKMEM_REDIS_H

#if defined(__has_include) && !defined(__cplusplus) && !defined(__ASSEMBLER__)
#if __has_include("zmalloc.h") && __has_include("defrag.c")

/* First, as in the servers' files: it decides what the C library's headers declare. */
#include "fmacros.h"
#include "version.h"
#define HAVE_DEFRAG
#include "zmalloc.h"
#ifndef HAVE_MALLOC_SIZE
#error "hakmem/redis.h needs blocks without a prefix: build the server with USE_MALLOC_USABLE_SIZE"
#endif

#include <hakmem/hakmem.h>

/* ---- redis: functions of jemalloc ---- */

#define MALLOCX_TCACHE_NONE 0
#define mallocx(n, flags) hakmem_defrag_malloc(n)
#define dallocx(p, flags) hakmem_defrag_free(p)

static inline int hakmem_redis_hint(void *p) { return hakmem_defrag_hint(p); }
#define je_get_defrag_hint hakmem_redis_hint

/* ---- the servers' functions that ask jemalloc: weak, since each file has them ---- */

#define HAKMEM_INSTEAD(name) extern __typeof__(name) __wrap_##name __attribute__((weak))

static inline int hakmem_redis_info(size_t *allocated, size_t *active, size_t *resident,
                                    size_t *gain)
{
    size_t bytes = hakmem_defrag_gain();
    *allocated = zmalloc_used_memory();
    *active = *allocated + bytes;
    *resident = zmalloc_get_rss();
    if (gain != NULL)
        *gain = bytes;
    return 1;
}

static inline void hakmem_redis_zero(size_t *one, size_t *other)
{
    if (one != NULL)
        *one = 0;
    if (other != NULL)
        *other = 0;
}

HAKMEM_INSTEAD(zmalloc_get_allocator_info);

#if __has_include("allocator_defrag.h") /* valkey from 8.1 on */

#include "allocator_defrag.h"

HAKMEM_INSTEAD(allocatorDefragInit);
HAKMEM_INSTEAD(allocatorDefragAlloc);
HAKMEM_INSTEAD(allocatorDefragFree);
HAKMEM_INSTEAD(allocatorShouldDefrag);
HAKMEM_INSTEAD(allocatorDefragGetFragSmallbins);
HAKMEM_INSTEAD(getAllocatorFragmentation);

int __wrap_zmalloc_get_allocator_info(size_t *allocated, size_t *active, size_t *resident,
                                      size_t *retained, size_t *muzzy)
{
    hakmem_redis_zero(retained, muzzy);
    return hakmem_redis_info(allocated, active, resident, NULL);
}

int __wrap_allocatorDefragInit(void) { return 0; }
void *__wrap_allocatorDefragAlloc(size_t n) { return hakmem_defrag_malloc(n); }
void __wrap_allocatorDefragFree(void *p, size_t n)
{
    (void)n;
    hakmem_defrag_free(p);
}
int __wrap_allocatorShouldDefrag(void *p) { return hakmem_defrag_hint(p); }
unsigned long __wrap_allocatorDefragGetFragSmallbins(void) { return hakmem_defrag_gain(); }

/* Per cent of what is allocated. */
float __wrap_getAllocatorFragmentation(size_t *bytes)
{
    size_t gain = hakmem_defrag_gain(), allocated = zmalloc_used_memory();
    if (bytes != NULL)
        *bytes = gain;
    return allocated == 0 ? 0 : 100.0f * (float)gain / (float)allocated;
}

#elif REDIS_VERSION_NUM >= 0x00080000

int __wrap_zmalloc_get_allocator_info(int refresh, size_t *allocated, size_t *active,
                                      size_t *resident, size_t *retained, size_t *muzzy,
                                      size_t *gain)
{
    (void)refresh;
    hakmem_redis_zero(retained, muzzy);
    return hakmem_redis_info(allocated, active, resident, gain);
}

#else

int __wrap_zmalloc_get_allocator_info(size_t *allocated, size_t *active, size_t *resident)
{
    return hakmem_redis_info(allocated, active, resident, NULL);
}

#endif

#endif
#endif
#endif

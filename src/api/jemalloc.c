/* jemalloc's functions that no other allocator has, for programs that are linked with its shared
 * library and get hakmem instead, as by LD_PRELOAD. They are the same calls as malloc's, with
 * flags: an alignment, zeros, and which cache and arena the block is of. There is one heap, so an
 * arena says nothing, nor does a cache that the program made; "no cache" is past the thread's
 * stacks, as the functions for programs that move their blocks (hakmem_defrag_malloc).
 *
 * Only where malloc is ours, too: in no form of the library that stands beside another one. */
#include <errno.h>
#include <string.h>

#include "api/blocks.h"
#include "api/slow.h"
#include "hakmem/hakmem.h"
#include "heap/hardening.h"

#define EXPORT __attribute__((visibility("default")))

/* Of jemalloc's header: the logarithm of the alignment, a bit, a number plus 2. */
#define FLAG_ALIGN 0x3f
#define FLAG_ZERO 0x40
#define FLAG_CACHE 0xfff00
#define CACHE_NONE 0x100

#define ALIGN_OF_ALL 16

/* 1 for what each block has. */
FAST size_t flags_align(int flags)
{
    size_t align = (size_t)1 << (flags & FLAG_ALIGN);
    return align > ALIGN_OF_ALL ? align : 1;
}

FAST bool flags_past(int flags) { return unlikely((flags & FLAG_CACHE) == CACHE_NONE); }

static size_t usable(const void *p) { return hakmem_malloc_usable_size(p); }

/* All that the program may use, since rallocx takes it for zero as far as that goes. */
static void *zeroed(void *p, size_t from)
{
    if (p != NULL)
        memset((char *)p + from, 0, excess(usable(p), from));
    return p;
}

static SLOW void *malloc_with(size_t n, int flags)
{
    size_t align = flags_align(flags);
    bool zero = (flags & FLAG_ZERO) != 0;
    if (align != 1) {
        void *p = hakmem_aligned_alloc(align, n);
        return zero ? zeroed(p, 0) : p;
    }
    if (flags_past(flags))
        return zero ? zeroed(slow_malloc_past(n), 0) : slow_malloc_past(n);
    return zero ? zeroed(hakmem_calloc(1, n), n) : hakmem_malloc(n);
}

EXPORT void *mallocx(size_t n, int flags)
{
    bool plain = (flags & (FLAG_ALIGN | FLAG_ZERO)) == 0 && !flags_past(flags);
    return likely(plain) ? hakmem_malloc(n) : malloc_with(n, flags);
}

EXPORT void *rallocx(void *p, size_t n, int flags)
{
    size_t align = flags_align(flags);
    bool zero = (flags & FLAG_ZERO) != 0;
    if (p == NULL)
        return mallocx(n, flags);
    n = larger(n, 1); /* realloc would free it */
    if (align == 1 && !zero)
        return hakmem_realloc(p, n);
    unsigned bin;
    size_t before = zero_sized_holds(p) ? 0 : resized_find(p, &bin, RETURN_ADDRESS);
    if (before == 0 && !zero_sized_holds(p)) {
        errno = EINVAL;
        return NULL;
    }
    if (align == 1)
        return zeroed(hakmem_realloc(p, n), before);
    if (n <= MOST_BYTES && (uintptr_t)p % align == 0 && usable_of_new(n, align) == before)
        return p;
    void *q = hakmem_aligned_alloc(align, n);
    if (q == NULL)
        return NULL;
    memcpy(q, p, smaller(n, before));
    hakmem_free(p);
    return zero ? zeroed(q, smaller(n, before)) : q;
}

/* In place a block has what it has. */
EXPORT size_t xallocx(void *p, size_t n, size_t extra, int flags)
{
    (void)n, (void)extra, (void)flags;
    return hakmem_malloc_usable_size(p);
}

EXPORT size_t sallocx(const void *p, int flags)
{
    (void)flags;
    return hakmem_malloc_usable_size(p);
}

EXPORT size_t nallocx(size_t n, int flags)
{
    size_t align = flags_align(flags);
    page_size(); /* the process's start, before what is hardened is known */
    return larger(n, align) > MOST_BYTES ? 0 : usable_of_new(n, align);
}

EXPORT void dallocx(void *p, int flags)
{
    if (flags_past(flags))
        slow_free_past(p, RETURN_ADDRESS);
    else
        hakmem_free(p);
}

/* Any size from what was requested to what is usable is right, also of a guarded block, which has
 * no byte more than was requested. */
EXPORT void sdallocx(void *p, size_t n, int flags)
{
    size_t align = flags_align(flags);
    if (unlikely(hardening.sizes)) {
        size_t has = usable(p);
        if (nallocx(n, flags) == nallocx(has, flags))
            n = has;
        sized_free_check(p, align, n, RETURN_ADDRESS);
    }
    if (flags_past(flags))
        slow_free_past(p, RETURN_ADDRESS);
    else
        hakmem_free(p);
}

#include "api/slow.h"

#include <errno.h>
#include <string.h>

#include "back/large.h"
#include "back/superslab.h"
#include "front/cache.h"
#include "heap/shard.h"
#include "life/life.h"
#include "watch/report.h"

/* No processor has more address space for a program; PTRDIFF_MAX is far above. */
#define MOST_BYTES ((size_t)1 << 52)

static void *out_of_memory(void)
{
    errno = ENOMEM;
    return NULL;
}

static void report(struct finding found)
{
    if (unlikely(found.what != MISUSE_NONE))
        report_misuse("free", found.what, found.where);
}

/* A block of a class, through the thread's cache if it has one. */
static void *class_take(unsigned cls)
{
    struct cache *cache = thread_cache();
    if (likely(cache != NULL)) {
        void *p;
        if (cache_pop(cache, (BIN_FIRST + cls) * BIN_BYTES, &p))
            return p;
        return cache_refill(cache, cls);
    }
    void *p = NULL;
    return shard_take(0, cls, &p + 1, 1) == 1 ? p : NULL;
}

static void *take_once(size_t n, size_t align, bool *zero)
{
    size_t least = n < align ? align : n;
    *zero = false;
    if (least <= CLASS_MOST) {
        unsigned cls = class_of(least);
        while ((size_classes[cls].size & (align - 1)) != 0)
            cls++;
        return class_take(cls);
    }
    if (least <= CLASS_SLICES_MOST && align <= SLICE) {
        void *p = class_take(class_of_slices(least));
        *zero = p != NULL && shards_hand_out(p, n);
        return p;
    }
    thread_cache(); /* the process's start */
    return large_take(n == 0 ? 1 : n, align, zero);
}

/* Slabs begin at multiples of 64 KiB, so a class whose size is a multiple of the alignment has
 * all its blocks aligned; at the latest the next power of two is one. What is kept for reuse goes
 * back before there is no memory. */
static void *take(size_t n, size_t align, bool *zero)
{
    if (n > MOST_BYTES || align > MOST_BYTES)
        return out_of_memory();
    void *p = take_once(n, align, zero);
    if (likely(p != NULL))
        return p;
    large_release();
    superslabs_release();
    p = take_once(n, align, zero);
    return p != NULL ? p : out_of_memory();
}

SLOW void *slow_malloc(size_t n)
{
    bool zero;
    return take(n, 1, &zero);
}

SLOW void *slow_calloc(size_t n)
{
    bool zero;
    void *p = take(n, 1, &zero);
    if (p != NULL && !zero)
        memset(p, 0, n);
    return p;
}

static void class_give(unsigned cls, void *p)
{
    struct cache *cache = thread_cache();
    if (unlikely(cache == NULL)) {
        report(shards_put(&p, 1));
        return;
    }
    if (unlikely(!cache_push_any(cache, cls, p)))
        report(cache_give(cache, cls, p));
}

static _Noreturn void report_foreign(const char *function, const void *p)
{
    report_misuse(function, (uintptr_t)p % 16 != 0 ? MISUSE_UNALIGNED : MISUSE_FOREIGN, p);
}

SLOW void slow_free(void *p)
{
    if (p == NULL)
        return;
    unsigned bin = map_bin(p);
    if (bin >= BIN_FIRST) {
        class_give(bin_class(bin), p);
        return;
    }
    if (bin == BIN_FOREIGN)
        report_foreign("free", p);
    if (bin != BIN_SLICES) {
        report((struct finding){large_give(p, bin), p});
        return;
    }
    unsigned cls;
    report((struct finding){shards_hand_in(p, &cls), p});
    class_give(cls, p);
}

size_t page_size(void)
{
    thread_cache(); /* the process's start */
    return os_page;
}

size_t block_usable(const void *p, const char *function)
{
    unsigned bin = map_bin(p);
    if (bin == BIN_FOREIGN)
        report_foreign(function, p);
    size_t usable = bin >= BIN_SLICES ? shards_usable(p) : large_usable(p, bin);
    if (usable == 0) {
        bool begins = bin == BIN_SLICES && (uintptr_t)p % SLICE == 0;
        report_misuse(function, begins ? MISUSE_FREE : MISUSE_INTERIOR, p);
    }
    return usable;
}

SLOW void *slow_realloc(void *p, size_t n)
{
    if (p == NULL)
        return slow_malloc(n);
    size_t usable = block_usable(p, "realloc");
    if (n == 0) {
        slow_free(p);
        return NULL;
    }
    unsigned bin = map_bin(p);
    if (bin >= BIN_SLICES) {
        /* It stays while it fits and fills more than half, or can grow where it is. */
        if (n <= usable && n > usable / 2)
            return p;
        if (bin == BIN_SLICES && n > usable && n <= CLASS_SLICES_MOST && shards_resize(p, n))
            return p;
    } else if (n > CLASS_MOST && n <= MOST_BYTES) {
        void *same = large_resize(p, bin, n);
        if (same != NULL)
            return same;
    }
    int saved = errno;
    void *other = slow_malloc(n);
    if (other == NULL && n <= usable) {
        errno = saved;
        return p;
    }
    if (other == NULL)
        return NULL;
    memcpy(other, p, n < usable ? n : usable);
    slow_free(p);
    return other;
}

SLOW void *slow_aligned(size_t align, size_t n)
{
    bool zero;
    return take(n, align, &zero);
}

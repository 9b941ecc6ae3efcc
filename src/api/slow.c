#include "api/slow.h"

#include <errno.h>
#include <string.h>

#include "back/large.h"
#include "front/cache.h"
#include "heap/shard.h"
#include "life/life.h"
#include "watch/report.h"

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

static void *take(size_t n, bool *zero)
{
    *zero = false;
    void *p = NULL;
    if (n <= CLASS_MOST) {
        p = class_take(class_of(n));
    } else if (n <= CLASS_SLICES_MOST) {
        p = class_take(class_of_slices(n));
        *zero = p != NULL && shards_hand_out(p, n);
    } else if (n <= PTRDIFF_MAX) {
        thread_cache(); /* the process's start */
        p = large_take(n, 1, zero);
    }
    return p != NULL ? p : out_of_memory();
}

SLOW void *slow_malloc(size_t n)
{
    bool zero;
    return take(n, &zero);
}

SLOW void *slow_calloc(size_t n)
{
    bool zero;
    void *p = take(n, &zero);
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
    const struct bin *bin = &cache->bins[BIN_FIRST + cls];
    if (bin->topmost == p)
        report_misuse("free", MISUSE_DOUBLE_FREE, p);
    if (bin->top >= bin->limit)
        report(cache_flush(cache, cls));
    cache_push_checked(cache, cls, p);
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
    unsigned cls = shards_class(p);
    if (cls == CLASSES)
        report_misuse("free", MISUSE_INTERIOR, p);
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
    if (usable == 0)
        report_misuse(function, MISUSE_INTERIOR, p);
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
    } else if (n > CLASS_MOST && n <= PTRDIFF_MAX) {
        void *same = large_resize(p, bin, n);
        if (same != NULL)
            return same;
    }
    void *other = slow_malloc(n);
    if (other == NULL)
        return NULL;
    memcpy(other, p, n < usable ? n : usable);
    slow_free(p);
    return other;
}

/* Slabs begin at multiples of 64 KiB, so a class whose size is a multiple of the alignment has
 * all its blocks aligned; at the latest the next power of two is one. */
SLOW void *slow_aligned(size_t align, size_t n)
{
    if (align <= CLASS_GRAIN)
        return slow_malloc(n);
    if (n > PTRDIFF_MAX || align > PTRDIFF_MAX)
        return out_of_memory();
    size_t least = n < align ? align : n;
    void *p = NULL;
    if (least <= CLASS_MOST) {
        unsigned cls = class_of(least);
        while (size_classes[cls].size % align != 0)
            cls++;
        p = class_take(cls);
    } else if (least <= CLASS_SLICES_MOST && align <= SLICE) {
        p = class_take(class_of_slices(least));
        if (p != NULL)
            shards_hand_out(p, least);
    } else {
        bool zero;
        thread_cache(); /* the process's start */
        p = large_take(least, align, &zero);
    }
    return p != NULL ? p : out_of_memory();
}

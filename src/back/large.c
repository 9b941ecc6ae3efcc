#include "back/large.h"

#include "back/map.h"
#include "back/meta.h"
#include "back/superslab.h"
#include "base/list.h"
#include "base/policy.h"
#include "os/os.h"

struct huge {
    struct list node; /* in the big-block cache; lock: kept */
    char *base;       /* the mapping's start; whoever holds the block or the lock */
    size_t length;    /* bytes mapped, whole slices */
    size_t usable;    /* bytes the program may use, whole pages */
};

static struct lock kept_lock;
static struct list kept = {&kept, &kept}; /* the big-block cache, newest first; lock: kept */
static size_t kept_bytes;                 /* lock: kept */

/* ---- runs of slices ---- */

static size_t slices_for(size_t bytes) { return (bytes + SLICE - 1) >> SLICE_BITS; }

static unsigned run_index(const struct superslab *s, const void *p)
{
    return (unsigned)((size_t)((const char *)p - s->base) >> SLICE_BITS);
}

static void *run_take(size_t n, size_t align, bool *zero)
{
    struct superslab *s;
    size_t slices = slices_for(n);
    char *p = slices_take(slices, align <= SLICE ? 1 : align / SLICE, zero, &s);
    if (p == NULL)
        return NULL;
    unsigned index = run_index(s, p);
    s->run[index] = (uint8_t)slices;
    s->usable[index] = (uint32_t)round_up(n, os_page);
    map_set(p, 1, BIN_LARGE, s);
    return p;
}

static void run_give(struct superslab *s, void *p)
{
    map_set(p, 1, BIN_FOREIGN, NULL);
    slices_give(s, p, s->run[run_index(s, p)]);
}

static void *run_resize(struct superslab *s, void *p, size_t n)
{
    unsigned index = run_index(s, p);
    size_t now = s->run[index];
    size_t then = slices_for(n);
    if (n > RUN_MOST)
        return NULL;
    if (then > now) {
        if (!slices_extend(s, p, now, then - now))
            return NULL;
    } else if (then < now) {
        slices_give(s, (char *)p + then * SLICE, now - then);
    }
    s->run[index] = (uint8_t)then;
    s->usable[index] = (uint32_t)round_up(n, os_page);
    return p;
}

/* ---- huge blocks ---- */

static void kept_add(struct huge *h)
{
    lock_take(&kept_lock);
    list_push(&kept, &h->node);
    kept_bytes += h->length;
    lock_release(&kept_lock);
}

/* Unmaps the oldest kept mappings until at most `budget` bytes are kept. */
static void kept_trim(size_t budget)
{
    for (;;) {
        struct huge *oldest = NULL;
        lock_take(&kept_lock);
        if (kept_bytes > budget) {
            oldest = list_entry(kept.prev, struct huge, node);
            list_remove(&oldest->node);
            kept_bytes -= oldest->length;
        }
        lock_release(&kept_lock);
        if (oldest == NULL)
            return;
        if (!os_unmap(oldest->base, oldest->length)) {
            /* At its limit of mappings the kernel can refuse: the address space stays ours, empty,
             * and is as good as any for the next block. */
            os_purge(oldest->base, oldest->length);
            kept_add(oldest);
            return;
        }
        meta_give(oldest, sizeof *oldest);
    }
}

/* The smallest kept mapping that holds `length` and isn't much larger. */
static struct huge *kept_take(size_t length, size_t align)
{
    struct huge *best = NULL;
    size_t most = length + length / policy.big_cache_slack;
    lock_take(&kept_lock);
    for (struct list *node = kept.next; node != &kept; node = node->next) {
        struct huge *h = list_entry(node, struct huge, node);
        if (h->length >= length && h->length <= most && ((uintptr_t)h->base & (align - 1)) == 0 &&
            (best == NULL || h->length < best->length))
            best = h;
    }
    if (best != NULL) {
        list_remove(&best->node);
        kept_bytes -= best->length;
    }
    lock_release(&kept_lock);
    return best;
}

static void *huge_take(size_t n, size_t align, bool *zero)
{
    size_t length = round_up(n, SLICE);
    if (align < SLICE)
        align = SLICE;
    struct huge *h = kept_take(length, align);
    *zero = h == NULL;
    if (h == NULL) {
        h = meta_take(sizeof *h);
        if (h == NULL)
            return NULL;
        h->length = length;
        h->base = os_map_aligned(length, align);
        if (h->base == NULL) {
            kept_trim(0);
            h->base = os_map_aligned(length, align);
        }
        if (h->base == NULL || !map_cover(h->base, SLICE)) {
            if (h->base != NULL)
                os_unmap(h->base, length);
            meta_give(h, sizeof *h);
            return NULL;
        }
        os_name(h->base, length, "hakmem: huge block");
    }
    h->usable = round_up(n, os_page);
    map_set(h->base, 1, BIN_HUGE, h);
    return h->base;
}

static void huge_give(struct huge *h)
{
    map_set(h->base, 1, BIN_FOREIGN, NULL);
    kept_add(h);
    kept_trim(policy.big_cache_bytes);
}

static void *huge_resize(struct huge *h, size_t n)
{
    size_t length = round_up(n, SLICE);
    if (n <= RUN_MOST)
        return NULL;
    if (length == h->length || os_resize(h->base, h->length, length)) {
        h->length = length;
        h->usable = round_up(n, os_page);
        return h->base;
    }
    if (length < h->length)
        return NULL;
    char *target = os_map_aligned(length, SLICE);
    if (target == NULL)
        return NULL;
    if (!map_cover(target, SLICE) || !os_move(h->base, h->length, target, length)) {
        os_unmap(target, length);
        return NULL;
    }
    map_set(h->base, 1, BIN_FOREIGN, NULL);
    h->base = target;
    h->length = length;
    h->usable = round_up(n, os_page);
    map_set(target, 1, BIN_HUGE, h);
    return target;
}

/* ---- both ---- */

void *large_take(size_t n, size_t align, bool *zero)
{
    if (n <= RUN_MOST && align <= SUPERSLAB) {
        void *p = run_take(n, align, zero);
        if (p != NULL)
            return p;
        /* No room for a whole superslab: an own mapping may still fit. */
    }
    return huge_take(n, align, zero);
}

/* The descriptor behind p if a block begins exactly there. */
static void *block_owner(const void *p)
{
    return ((uintptr_t)p & (SLICE - 1)) == 0 ? map_owner(p) : NULL;
}

enum misuse large_give(void *p, unsigned bin)
{
    void *owner = block_owner(p);
    if (owner == NULL)
        return MISUSE_INTERIOR;
    if (bin == BIN_LARGE)
        run_give(owner, p);
    else
        huge_give(owner);
    return MISUSE_NONE;
}

size_t large_usable(const void *p, unsigned bin)
{
    void *owner = block_owner(p);
    if (owner == NULL)
        return 0;
    if (bin == BIN_HUGE)
        return ((struct huge *)owner)->usable;
    struct superslab *s = owner;
    return s->usable[run_index(s, p)];
}

void *large_resize(void *p, unsigned bin, size_t n)
{
    void *owner = block_owner(p);
    if (owner == NULL)
        return NULL;
    return bin == BIN_HUGE ? huge_resize(owner, n) : run_resize(owner, p, n);
}

void large_fork_lock(void) { lock_take(&kept_lock); }
void large_fork_unlock(void) { lock_release(&kept_lock); }

#include "back/reserve.h"

#include "back/map.h"
#include "base/atomic.h"
#include "os/lock.h"
#include "os/os.h"

/* Each is at least twice as long as the one before, so there are never more than the address space
 * has doublings; but where memory is short. */
#define REGIONS 48
#define REGION_LEAST (256 * KiB)

struct region {
    char *start;   /* atomic; null: there is none. lock: reserve */
    size_t length; /* atomic; constant while there is one */
    size_t used;   /* bytes of blocks in use; atomic, grows under the lock */
};

/* Before each block. */
struct head {
    size_t bytes;
    uintptr_t mark; /* atomic: the block's address with all bits turned, plain when it is free */
};

static_assert(sizeof(struct head) == 16, "a block begins at a multiple of 16");

static struct {
    struct lock lock;
    unsigned count;         /* regions; atomic; lock: this */
    struct region *current; /* of which blocks are cut; lock: this */
    char *bump;             /* where the next may begin; lock: this */
} reserve FORK_PAGE = {.lock = LOCK(RESERVE)};
static struct region reserved[REGIONS];

/* ---- regions ---- */

static struct region *region_of(const void *p)
{
    if (load_relaxed(&reserve.count) == 0)
        return NULL;
    for (struct region *r = reserved; r < reserved + REGIONS; r++) {
        const char *start = load_acquire(&r->start);
        if (start != NULL && (size_t)((const char *)p - start) < load_relaxed(&r->length))
            return r;
    }
    return NULL;
}

/* A new one with room for so many bytes. It has whole slices for itself, since a
 * block of the heap that began in one of them would have an entry of the map there. */
static bool region_add(size_t least)
{
    ASSERT(lock_held(&reserve.lock));
    struct region *r = reserved;
    while (r < reserved + REGIONS && r->start != NULL)
        r++;
    if (r == reserved + REGIONS)
        return false;
    size_t length = reserve.current != NULL ? 2 * reserve.current->length : REGION_LEAST;
    length = round_up(length > least ? length : least, SLICE);
    char *start = os_map_aligned(length, SLICE);
    if (start == NULL) {
        length = round_up(least, SLICE);
        start = os_map_aligned(length, SLICE);
    }
    if (start == NULL)
        return false;
    os_name(start, length, "hakmem: reserve");
    store_relaxed(&reserve.count, reserve.count + 1);
    store_relaxed(&r->length, length);
    store_relaxed(&r->used, 0);
    store_release(&r->start, start);
    reserve.current = r;
    reserve.bump = start;
    return true;
}

/* Gives a region back whose blocks are all free. While a fork lasts the one in use
 * begins anew, since more may be asked for. */
static void region_end(struct region *r)
{
    ASSERT(lock_held(&reserve.lock));
    char *start = r->start;
    if (start == NULL || load_acquire(&r->used) != 0)
        return;
    if (r == reserve.current)
        reserve.bump = start;
    if (r == reserve.current && !fork_is_over())
        return;
    if (r == reserve.current)
        reserve.current = NULL;
    store_relaxed(&r->start, NULL);
    store_relaxed(&reserve.count, reserve.count - 1);
    if (!os_unmap(start, r->length)) { /* for reserve_release to try again */
        os_purge(start, r->length);
        store_relaxed(&reserve.count, reserve.count + 1);
        store_release(&r->start, start);
    }
}

/* ---- blocks ---- */

static struct head *head_of(const void *p) { return (struct head *)p - 1; }

static bool may_begin(const struct region *r, const void *p)
{
    return (uintptr_t)p % 16 == 0 && (size_t)((const char *)p - r->start) >= sizeof(struct head);
}

/* Where the next block begins in the region in use; null if it has no room. */
static char *place_next(size_t n, size_t align)
{
    ASSERT(lock_held(&reserve.lock));
    const struct region *r = reserve.current;
    if (r == NULL)
        return NULL;
    char *p = (char *)round_up((uintptr_t)reserve.bump + sizeof(struct head), align);
    const char *end = r->start + r->length;
    return p <= end && (size_t)(end - p) >= n ? p : NULL;
}

COLD void *reserve_take(size_t n, size_t align)
{
    ASSERT(n >= 1 && is_power_of_two(align));
    n = round_up(n, 16);
    if (align < 16)
        align = 16;
    lock_take(&reserve.lock);
    char *p = place_next(n, align);
    if (p == NULL && region_add(n + align + sizeof(struct head)))
        p = place_next(n, align);
    if (p != NULL) {
        add_relaxed(&reserve.current->used, n);
        head_of(p)->bytes = n;
        store_release(&head_of(p)->mark, ~(uintptr_t)p);
        reserve.bump = p + n;
    }
    lock_release(&reserve.lock);
    return p;
}

COLD enum misuse reserve_give(void *p)
{
    struct region *r = region_of(p);
    if (r == NULL)
        return MISUSE_FOREIGN;
    if (!may_begin(r, p))
        return MISUSE_INTERIOR;
    struct head *head = head_of(p);
    size_t bytes = head->bytes;
    uintptr_t mark = ~(uintptr_t)p;
    if (!__atomic_compare_exchange_n(&head->mark, &mark, (uintptr_t)p, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_RELAXED))
        return mark == (uintptr_t)p ? MISUSE_FREE : MISUSE_INTERIOR;
    if (bytes >= SLICE) { /* whatever keeps its region */
        uintptr_t first = round_up((uintptr_t)p, os_page);
        os_purge((void *)first, (((uintptr_t)p + bytes) & ~(os_page - 1)) - first);
    }
    ASSERT(load_relaxed(&r->used) >= bytes);
    if (__atomic_sub_fetch(&r->used, bytes, __ATOMIC_ACQ_REL) == 0) {
        lock_take(&reserve.lock);
        region_end(r);
        lock_release(&reserve.lock);
    }
    return MISUSE_NONE;
}

COLD size_t reserve_usable(const void *p)
{
    const struct region *r = region_of(p);
    if (r == NULL || !may_begin(r, p) || load_acquire(&head_of(p)->mark) != ~(uintptr_t)p)
        return 0;
    return head_of(p)->bytes;
}

/* ---- fork, accounting ---- */

void reserve_release(void)
{
    if (load_relaxed(&reserve.count) == 0)
        return;
    lock_take(&reserve.lock);
    for (struct region *r = reserved; r < reserved + REGIONS; r++)
        region_end(r);
    lock_release(&reserve.lock);
}

/* What a thread was in the middle of when it was left behind is at most a block that nobody has. */
void reserve_fork_child(void)
{
    ASSERT(lock_all_held());
    if (reserve.count == 0 && reserve.lock.state == 0)
        return;
    lock_reset(&reserve.lock);
    reserve.current = NULL;
    reserve_release();
}

struct reserve_parts reserve_parts(void)
{
    struct reserve_parts parts = {0, 0};
    for (const struct region *r = reserved; r < reserved + REGIONS && reserve.count > 0; r++) {
        if (load_acquire(&r->start) == NULL)
            continue;
        parts.mapped += load_relaxed(&r->length);
        parts.used += load_relaxed(&r->used);
    }
    return parts;
}

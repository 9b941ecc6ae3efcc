#include "back/forbidden.h"

#include <string.h>

#include "back/meta.h"
#include "back/use.h"
#include "base/atomic.h"
#include "base/memory.h"
#include "base/policy.h"
#include "learn/keep.h"
#include "learn/laws.h"
#include "os/os.h"

/* ---- the pages around a block ---- */

/* Blocks above 32 KiB at a time whose guards divide mappings of the kernel, two for each; further
 * ones have no guards. Half of vm.max_map_count; without this bound malloc failed at 44,000 blocks.
 */
#define GUARDED_MAPPINGS 16384

static size_t by_mapping; /* blocks whose guards are so; atomic */

/* Nobody can touch what is behind so many bytes, and it holds nothing: by the mapping. */
static SLOW void forbid_by_mapping(struct huge *h, size_t usable)
{
    char *rest = h->base + usable;
    if (h->usable > usable && !os_purge(rest, h->usable - usable))
        memset(rest, 0, h->usable - usable);
    if (h->length > usable)
        os_forbid(rest, h->length - usable);
}

static bool lose_marks(struct huge *h)
{
    if (!os_unguard(h->base, h->length))
        return false;
    h->marks = false;
    add_relaxed(&by_mapping, 1);
    return true;
}

/* The kernel may refuse marks later on, as in memory that was locked meanwhile. */
static SLOW void forbid(struct huge *h, size_t usable)
{
    struct os_run rest = {h->base + usable, h->length - usable};
    if (rest.length == 0 || (h->marks && os_guard_runs(&rest, 1)))
        return;
    if (h->marks)
        lose_marks(h);
    forbid_by_mapping(h, usable);
}

/* The guards divide a mapping that merges with those beside it. */
static SLOW bool map_with_marks(struct huge *h, size_t usable)
{
    h->before = os_page;
    h->mapped = h->length + 2 * os_page;
    char *start = os_map(h->mapped);
    if (start == NULL)
        return false;
    h->base = start + os_page;
    struct os_run guards[] = {{start, os_page}, {h->base + usable, h->length - usable + os_page}};
    if (os_guard_runs(guards, 2))
        return true;
    os_unmap(start, h->mapped);
    return false;
}

SLOW bool huge_guards_map(struct huge *h, size_t align, size_t usable)
{
    h->usable = usable;
    h->marks = hardening.marks && align == os_page && h->length <= MARKED_BYTES;
    if (h->marks && map_with_marks(h, usable)) {
        os_name(h->base - h->before, h->mapped, HUGE_NAME);
        return true;
    }
    h->marks = false;
    if (load_relaxed(&by_mapping) >= GUARDED_MAPPINGS)
        return false;
    h->base = os_map_block(h->length, usable, align, &h->before, &h->mapped);
    if (h->base == NULL)
        return false;
    add_relaxed(&by_mapping, 1);
    os_name(h->base - h->before, h->mapped, HUGE_NAME);
    return true;
}

/* With its guards; false where the kernel refuses. */
static SLOW bool huge_guards_unmap(const struct huge *h)
{
    bool done = os_unmap(h->base - h->before, h->mapped);
    if (done && !h->marks)
        sub_relaxed(&by_mapping, 1);
    return done;
}

SLOW bool huge_guards_move(struct huge *h, size_t usable)
{
    ASSERT(h->before != 0 && usable > 0 && usable <= h->length);
    char *end = h->base + h->usable;
    if (usable > h->usable && !(h->marks ? os_unguard(end, usable - h->usable)
                                         : os_let_write(end, usable - h->usable, true)))
        return false;
    if (usable < h->usable)
        forbid(h, usable);
    h->usable = usable;
    return true;
}

SLOW bool huge_guards_lift(struct huge *h)
{
    ASSERT(h->before != 0 && !h->marks);
    return os_let_write(h->base - h->before, h->mapped, true);
}

SLOW void huge_guards_lower(struct huge *h, size_t usable)
{
    ASSERT(usable >= h->usable && usable <= h->length);
    os_forbid(h->base - h->before, h->before);
    os_forbid(h->base + usable, h->mapped - h->before - usable);
    h->usable = usable;
}

/* The pages of a block go back to the kernel, and nobody can touch it. False, and it may still be
 * touched, where the kernel refuses. Marks are one call, and change no mapping. Else the pages go
 * back first: only while they can be touched os_purge finds out whether they do. */
static SLOW bool huge_guards_close(struct huge *h)
{
    if (h->marks && os_guard_runs(&(struct os_run){h->base, h->length}, 1))
        return true;
    if (h->marks && !lose_marks(h))
        return false;
    return os_purge(h->base, h->length) && os_forbid(h->base, h->length);
}

/* The first bytes of a closed one can be touched; false, and nobody can, where the kernel refuses.
 */
static SLOW bool huge_guards_open(const struct huge *h, size_t usable)
{
    return h->marks ? os_unguard(h->base, usable) : os_let_write(h->base, usable, true);
}

/* ---- freed blocks ---- */

/* Freed blocks above 32 KiB that stay inaccessible. A new block may take the place of one of the
 * oldest: git log --stat then makes 6,073 calls of mmap instead of 13,270. */
#define FORBIDDEN_MOST 256

/* Freed blocks of up to MARKED_BYTES could keep their pages (OPEN_BYTES). So many, the first of a
 * process, become inaccessible all the same, which takes about half a millisecond in all. Other
 * numbers were not measured. */
#define CLOSED_FIRST 64

/* And one more after each so many bytes freed in such blocks. */
#define CLOSED_EACH (16 * MiB)

struct forbidden forbidden = {.blocks = {&forbidden.blocks, &forbidden.blocks}};

bool forbidden_fits(size_t bytes)
{
    return bytes <= FORBIDDEN_BYTES && keep_apart(load_relaxed(&limits.space), bytes);
}

static SLOW void forbidden_add(struct huge *h)
{
    lock_take(&dirty_lock);
    list_push(&forbidden.blocks, &h->node);
    forbidden.count++;
    forbidden.bytes += h->mapped;
    lock_release(&dirty_lock);
}

static void forbidden_less(struct huge *h)
{
    ASSERT(lock_held(&dirty_lock) && forbidden.count > 0 && forbidden.bytes >= h->mapped);
    list_remove(&h->node);
    forbidden.count--;
    forbidden.bytes -= h->mapped;
}

/* What the kernel refuses is the newest then: next time it is another's turn. */
SLOW bool forbidden_unmap(struct huge *h)
{
    bool done = h->before != 0 ? huge_guards_unmap(h) : os_unmap(h->base, h->mapped);
    if (done)
        meta_give(h, sizeof *h);
    else
        forbidden_add(h);
    return done;
}

SLOW void forbidden_trim(size_t bytes)
{
    for (;;) {
        struct huge *oldest = NULL;
        lock_take(&dirty_lock);
        if (forbidden.count > 0 &&
            (forbidden.count >= FORBIDDEN_MOST || !forbidden_fits(forbidden.bytes + bytes))) {
            oldest = list_entry(forbidden.blocks.prev, struct huge, node);
            forbidden_less(oldest);
        }
        lock_release(&dirty_lock);
        if (oldest == NULL)
            return;
        if (!forbidden_unmap(oldest))
            return;
    }
}

SLOW bool forbidden_claims(size_t bytes)
{
    ASSERT(lock_held(&dirty_lock));
    forbidden.could_stay += bytes;
    bool claims = forbidden.claimed < CLOSED_FIRST + forbidden.could_stay / CLOSED_EACH;
    forbidden.claimed += claims;
    return claims;
}

static void *written; /* atomic */

SLOW void forbidden_look(const struct huge *h)
{
    if (unlikely(!is_zero(h->base, h->usable)))
        store_relaxed(&written, h->base);
}

SLOW void *forbidden_written(void)
{
    return load_relaxed(&written) == NULL ? NULL
                                          : __atomic_exchange_n(&written, NULL, __ATOMIC_RELAXED);
}

SLOW void forbidden_shut(struct huge *h)
{
    ASSERT(h->before >= os_page);
    bool empty = forbidden_fits(h->mapped) && huge_guards_close(h);
    use_let_go(h->length);
    if (!empty) {
        forbidden_unmap(h);
        return;
    }
    h->usable = 0;
    forbidden_trim(h->mapped);
    forbidden_add(h);
}

SLOW struct huge *forbidden_take(size_t length, size_t usable)
{
    struct huge *found = NULL;
    lock_take(&dirty_lock);
    size_t tries = forbidden.count / LAW_SMALL_PART;
    for (struct list *node = forbidden.blocks.prev; tries > 0 && found == NULL;
         node = node->prev, tries--) {
        struct huge *h = list_entry(node, struct huge, node);
        if (h->length == length && h->usable == 0)
            found = h;
    }
    if (found != NULL)
        forbidden_less(found);
    lock_release(&dirty_lock);
    if (found == NULL)
        return NULL;
    bool held = use_hold(length);
    if (held && huge_guards_open(found, usable))
        return found;
    if (held)
        use_let_go(length);
    forbidden_add(found);
    return NULL;
}

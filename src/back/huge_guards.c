#include "back/huge_guards.h"

#include <string.h>

#include "base/atomic.h"
#include "base/hardening.h"
#include "os/os.h"

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
    os_name(h->base, h->length, HUGE_NAME);
    return true;
}

SLOW bool huge_guards_unmap(const struct huge *h)
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

/* Marks are one call, and change no mapping. Else the pages go back first: only while they can be
 * touched os_purge finds out whether they do. */
SLOW bool huge_guards_close(struct huge *h)
{
    if (h->marks && os_guard_runs(&(struct os_run){h->base, h->length}, 1))
        return true;
    if (h->marks && !lose_marks(h))
        return false;
    return os_purge(h->base, h->length) && os_forbid(h->base, h->length);
}

SLOW bool huge_guards_open(const struct huge *h, size_t usable)
{
    return h->marks ? os_unguard(h->base, usable) : os_let_write(h->base, usable, true);
}

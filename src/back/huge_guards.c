#include "back/huge_guards.h"

#include <string.h>

#include "os/os.h"

/* Nobody can touch what is behind so many bytes, and it holds nothing: by the mapping. */
static SLOW void forbid_by_mapping(struct huge *h, size_t usable)
{
    char *rest = h->base + usable;
    if (h->usable > usable && !os_purge(rest, h->usable - usable))
        memset(rest, 0, h->usable - usable);
    if (h->length > usable)
        os_forbid(rest, h->length - usable);
}

/* The kernel may refuse marks later on, as in memory that was locked meanwhile. */
static SLOW void forbid(struct huge *h, size_t usable)
{
    struct os_run rest = {h->base + usable, h->length - usable};
    if (rest.length == 0 || (h->marks && os_guard_runs(&rest, 1)))
        return;
    if (h->marks)
        os_unguard(h->base, h->length);
    h->marks = false;
    forbid_by_mapping(h, usable);
}

SLOW void huge_guards_start(struct huge *h, size_t usable)
{
    h->usable = usable;
    if (h->marks)
        forbid(h, usable);
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
    if (h->marks && !os_unguard(h->base, h->length))
        return false;
    h->marks = false;
    return os_purge(h->base, h->length) && os_forbid(h->base, h->length);
}

SLOW bool huge_guards_open(const struct huge *h, size_t usable)
{
    return h->marks ? os_unguard(h->base, usable) : os_let_write(h->base, usable, true);
}

#include "back/huge_guards.h"

#include "os/os.h"

static bool permit(const struct huge *h, char *start, size_t length)
{
    return h->marks ? os_unguard(start, length) : os_let_write(start, length, true);
}

static void forbid(const struct huge *h, char *start, size_t length)
{
    if (h->marks)
        os_guard_runs(&(struct os_run){start, length}, 1);
    else if (os_purge(start, length))
        os_forbid(start, length);
}

SLOW bool huge_guards_move(struct huge *h, size_t usable)
{
    ASSERT(h->before != 0 && usable > 0 && usable <= h->length);
    if (usable > h->usable && !permit(h, h->base + h->usable, usable - h->usable))
        return false;
    if (usable < h->usable)
        forbid(h, h->base + usable, h->usable - usable);
    h->usable = usable;
    return true;
}

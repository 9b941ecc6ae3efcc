#include "back/forbidden.h"

#include "back/meta.h"
#include "back/use.h"
#include "base/hardening.h"
#include "learn/laws.h"
#include "os/os.h"

struct forbidden forbidden = {.blocks = {&forbidden.blocks, &forbidden.blocks}};

SLOW void forbidden_add(struct huge *h)
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
    bool done = os_unmap(h->base - h->before, h->mapped);
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
        if (forbidden.count > 0 && (forbidden.count >= LAW_FORBIDDEN_MOST ||
                                    forbidden.bytes + bytes > LAW_FORBIDDEN_BYTES)) {
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

/* Marks are one call, and change no mapping. Else the pages go back first: only while they can be
 * touched os_purge finds out whether they do. */
SLOW bool forbidden_close(struct huge *h)
{
    bool marks = hardening.marks && h->usable <= LAW_MARKED_BYTES;
    h->marked = marks && os_guard_runs(&(struct os_run){h->base, h->usable}, 1) ? h->usable : 0;
    if (h->marked != 0)
        return true;
    return (!marks || os_unguard(h->base, h->usable)) && os_purge(h->base, h->length) &&
           os_forbid(h->base, h->length);
}

/* The first bytes can be touched again; false, and nobody can, where the kernel refuses. */
static SLOW bool permit(struct huge *h, size_t usable)
{
    char *end = h->base + h->marked;
    if (usable > h->marked && !os_let_write(end, usable - h->marked, true))
        return false;
    if (h->marked != 0 && !os_unguard(h->base, h->marked)) {
        if (usable > h->marked)
            os_forbid(end, usable - h->marked);
        return false;
    }
    if (usable < h->marked) /* if it is refused, the guard is further away */
        os_forbid(h->base + usable, h->marked - usable);
    return true;
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
    if (held && permit(found, usable))
        return found;
    if (held)
        use_let_go(length);
    forbidden_add(found);
    return NULL;
}

#include "back/forbidden.h"

#include "back/huge_guards.h"
#include "back/meta.h"
#include "back/use.h"
#include "base/memory.h"
#include "learn/laws.h"
#include "os/os.h"

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
            (forbidden.count >= FORBIDDEN_MOST || forbidden.bytes + bytes > FORBIDDEN_BYTES)) {
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
    bool empty = h->mapped <= FORBIDDEN_BYTES && huge_guards_close(h);
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

/* realloc's slow path. */
#include <errno.h>
#include <string.h>

#include "api/blocks.h"
#include "api/door.h"
#include "api/sampled.h"
#include "api/slow.h"
#include "back/huge.h"
#include "base/policy.h"
#include "heap/hardening.h"
#include "heap/shards.h"
#include "heap/slab.h"
#include "learn/laws.h"
#include "life/scavenger.h"
#include "os/os.h"
#include "profile/guarded.h"
#include "profile/rate.h"
#include "profile/samples.h"

/* The pages of a long block go back while it is copied, so that they are not there twice. */
static void copy(char *to, char *from, size_t n)
{
    for (; unlikely(n >= LAW_CLEARED_MOST); n -= LAW_CALL_MOST) {
        memcpy(to, from, LAW_CALL_MOST);
        os_purge(from, LAW_CALL_MOST);
        to += LAW_CALL_MOST;
        from += LAW_CALL_MOST;
    }
    memcpy(to, from, n);
}

/* Into another block. Both ends as in the fast bodies. */
static SLOW void *realloc_moves(void *p, size_t n, size_t usable, const void *caller)
{
    int saved = errno;
    void *other;
    if (n > CLASS_MOST || unlikely(!cache_pop(cache_current(), class_bin_offset(n), &other)))
        other = slow_malloc(n);
    if (other == NULL && n <= usable) {
        errno = saved;
        store_relaxed(&sizes_unsure, true);
        return p;
    }
    if (other == NULL)
        return NULL;
    copy(other, p, n < usable ? n : usable);
    if (unlikely(!cache_push(cache_current(), p)))
        slow_free_from(p, caller);
    return other;
}

/* No block is smaller than the smallest, so a block that malloc made for n stays; and one that is
 * cut to exactly half. */
static inline bool stays_smallest(size_t n, size_t usable)
{
    return n <= usable && (usable <= CLASS_GRAIN || n == keep_block_least(usable));
}

bool plain_stays(size_t n, size_t usable) { return stays(n, usable) || stays_smallest(n, usable); }

/* A block of whole slices to more than it has, where it stands. A sampled one, too: if only those
 * moved, they alone would have to be drawn anew. */
static SLOW bool whole_grows(const void *p, size_t n, size_t usable)
{
    if (n <= usable || n > CLASS_SLICES_MOST)
        return false;
    struct door door;
    if (!enter(&door))
        return false;
    bool done = whole_resize(p, n);
    leave(&door);
    return done;
}

/* A huge one where it stands, or by moving its pages; null where that can't be. */
static SLOW void *huge_resize_inside(void *p, size_t n)
{
    struct door door;
    if (!enter(&door))
        return NULL;
    /* Before the address may be another's. Where the block stays as it is, it is freed soon. */
    if (unlikely(load_relaxed(&profile_used)))
        samples_forget(p);
    void *same = huge_resize(p, n);
    leave_taken(&door, n);
    if (unlikely(closed_for(CLOSED_PROFILED)) && same != NULL)
        sampled_count_huge(same, n);
    return same;
}

/* What the map does not know: whether it stays. A guarded block has its page for itself, so it does
 * whenever it becomes no larger; others are in the reserve. */
static SLOW bool foreign_stays(void *p, size_t n, size_t usable, const void *caller)
{
    if (!guarded_holds(p))
        return plain_stays(n, usable);
    struct finding found = {MISUSE_NONE, NULL};
    if (n <= usable)
        found = guarded_stays(p, n);
    if (unlikely(found.what != MISUSE_NONE))
        report_at_once("realloc", found.what, p, caller);
    return n <= usable;
}

/* What is no block of a class in the window, or no block at all; or one that may be free. */
static SLOW void *realloc_others(void *p, size_t n, const void *caller)
{
    unsigned bin;
    bool nothing = zero_sized_holds(p);
    size_t usable = nothing ? 0 : resized_find(p, &bin, caller);
    if (unlikely(usable == 0) && !nothing) {
        errno = EINVAL;
        return NULL;
    }
    if (n == 0) {
        slow_free_from(p, caller);
        return NULL;
    }
    if (nothing)
        return realloc_moves(p, n, 0, caller);
    bool stays_here = kind()->stays(n, usable);
    if ((bin >= BIN_FIRST || bin == BIN_WHOLE) && stays_here)
        return p;
    if (bin == BIN_WHOLE && usable > CLASS_MOST && whole_grows(p, n, usable))
        return p;
    if (bin == BIN_FOREIGN && foreign_stays(p, n, usable, caller))
        return p;
    if (bin == BIN_SAMPLED && (stays_here || (usable > CLASS_MOST && whole_grows(p, n, usable))))
        return sampled_resize(p, n);
    void *same = NULL;
    bool may_be_huge = n == usable || least_of(n, 1) > CLASS_MOST || !hardening.guards;
    if (bin == BIN_HUGE && n <= MOST_BYTES && may_be_huge)
        same = huge_resize_inside(p, n);
    return same != NULL ? same : realloc_moves(p, n, usable, caller);
}

/* Served as without a recording: that begins here once more. */
static SLOW void *realloc_recorded(void *p, size_t n, struct caller from)
{
    void *q = slow_realloc(p, n, 0);
    recorded_end_realloc(p, q, n, from);
    return q;
}

static inline void *realloc_known(void *p, size_t n, size_t usable, const void *caller)
{
    if (n == 0) {
        slow_free_from(p, caller);
        return NULL;
    }
    if (stays_smallest(n, usable))
        return p;
    if (usable > CLASS_MOST && whole_grows(p, n, usable))
        return p;
    return realloc_moves(p, n, usable, caller);
}

/* What the fast path did not find a size for. A function of its own, so that slow_realloc needs no
 * frame for the others; it lies with that (src/layout.ld). */
static SLOW __attribute__((section(".text.slow_realloc.unknown"))) void *
realloc_unknown(void *p, size_t n, struct caller from)
{
    if (unlikely(closed_for(CLOSED_RECORDED)) && n != 0 && !scavenger_calls() && recorded_begin())
        return realloc_recorded(p, n, from);
    const uint16_t *entry = map_window_entry(p);
    bool whole = entry != NULL && load_relaxed(entry) == BIN_WHOLE * BIN_BYTES;
    size_t usable = whole ? slab_usable(p, map_entry_owner(entry)) : 0;
    if (usable == 0)
        return realloc_others(p, n, from.code);
    return stays(n, usable) ? p : realloc_known(p, n, usable, from.code);
}

SLOW void *slow_realloc(void *p, size_t n, size_t usable)
{
    if (p == NULL)
        return slow_malloc(n);
    if (usable == 0)
        return realloc_unknown(p, n, CALLER);
    if (unlikely(block_sealed(p)))
        return realloc_others(p, n, RETURN_ADDRESS);
    return realloc_known(p, n, usable, RETURN_ADDRESS);
}

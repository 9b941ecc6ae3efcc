#include "front/deferred.h"

#include "back/large.h"
#include "back/map.h"
#include "back/reserve.h"
#include "front/cache.h"
#include "heap/shard.h"

struct note {
    struct note *next;
    void *block;
};

static struct note *notes FORK_PAGE; /* atomic: newest first; grows at the front, taken whole */

/* Without memory for the note the block stays taken. A fork that ends clears its state before it
 * looks for notes; so it finds this one, or is seen to have ended. */
COLD struct finding deferred_put(void *p)
{
    struct note *note = reserve_take(sizeof *note, 1);
    if (note != NULL) {
        note->block = p;
        note->next = load_relaxed(&notes);
        while (!__atomic_compare_exchange_n(&notes, &note->next, note, false, __ATOMIC_SEQ_CST,
                                            __ATOMIC_RELAXED))
            ;
    }
    return fork_is_over() ? deferred_drain() : (struct finding){MISUSE_NONE, NULL};
}

static struct finding give(void *p)
{
    unsigned bin = map_bin(p);
    if (bin_of_slab(bin))
        return shards_put(&p, 1);
    return (struct finding){bin == BIN_FOREIGN ? MISUSE_FREE : large_give(p, bin), p};
}

COLD struct finding deferred_drain(void)
{
    struct finding found = {MISUSE_NONE, NULL};
    while (load_relaxed(&notes) != NULL && fork_is_over() && lock_enter(&cacheless_lock)) {
        struct note *note = __atomic_exchange_n(&notes, NULL, __ATOMIC_ACQUIRE);
        while (note != NULL) {
            struct note *next = note->next;
            struct finding one = give(note->block);
            if (found.what == MISUSE_NONE && one.what != MISUSE_NONE)
                found = one;
            reserve_give(note);
            note = next;
        }
        lock_release(&cacheless_lock);
    }
    return found;
}

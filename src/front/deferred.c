#include "front/deferred.h"

#include "back/huge.h"
#include "back/map.h"
#include "back/reserve.h"
#include "front/cache.h"
#include "heap/shards.h"
#include "os/lock.h"
#include "profile/guarded.h"
#include "profile/samples.h"

struct link {
    struct link *next;
};

struct note {
    struct link link; /* first */
    void *block;
};

/* Newest first; atomic: each grows at the front and is taken whole. Blocks themselves, linked
 * through their first word, are for want of memory: it is the program's until the free, and a block
 * that is freed twice would spoil the list. */
static struct {
    struct link *notes, *blocks;
} deferred FORK_PAGE;

static void push(struct link **list, struct link *link)
{
    link->next = load_relaxed(list);
    while (!__atomic_compare_exchange_n(list, &link->next, link, false, __ATOMIC_SEQ_CST,
                                        __ATOMIC_RELAXED))
        ;
}

static struct link *take_all(struct link **list)
{
    return __atomic_exchange_n(list, NULL, __ATOMIC_ACQUIRE);
}

static bool is_empty(void)
{
    return load_relaxed(&deferred.notes) == NULL && load_relaxed(&deferred.blocks) == NULL;
}

/* A fork that ends clears its state before it looks for what is here; so it finds this block, or is
 * seen to have ended. */
COLD struct finding deferred_put(void *p)
{
    struct note *note = reserve_take(sizeof *note, 1);
    if (note != NULL) {
        note->block = p;
        push(&deferred.notes, &note->link);
    } else {
        push(&deferred.blocks, p);
    }
    return fork_is_over() ? deferred_drain() : (struct finding){MISUSE_NONE, NULL};
}

static struct finding give(void *p)
{
    static const struct guarded_call unknown;
    unsigned bin = map_bin(p);
    bool guarded = bin == BIN_FOREIGN && guarded_holds(p);
    if (bin == BIN_SAMPLED || ((guarded || bin == BIN_HUGE) && load_relaxed(&profile_used)))
        samples_forget(p);
    if (guarded)
        return (struct finding){guarded_give(p, &unknown), p};
    if (bin_of_slab(bin))
        return shards_put(&p, 1);
    return (struct finding){bin == BIN_FOREIGN ? MISUSE_FREE : huge_give(p), p};
}

COLD struct finding deferred_drain(void)
{
    ASSERT(lock_none_held());
    struct finding found = {MISUSE_NONE, NULL};
    while (!is_empty() && fork_is_over() && lock_enter(&cacheless_lock)) {
        for (struct link *link = take_all(&deferred.notes), *next; link != NULL; link = next) {
            next = link->next;
            finding_keep(&found, give(((struct note *)link)->block));
            reserve_give(link);
        }
        for (struct link *link = take_all(&deferred.blocks), *next; link != NULL; link = next) {
            next = link->next;
            link->next = NULL; /* as a hardened heap's free blocks hold zeroes */
            finding_keep(&found, give(link));
        }
        lock_release(&cacheless_lock);
    }
    return found;
}

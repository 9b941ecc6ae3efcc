/* Options that may change while the program runs, and orders that another process gives: it writes
 * them into `orders`, makes a step of giving back due (purge.h), and closes all stacks to frees
 * (front/cache.h), so that the next free takes the slow path. So nothing looks for orders on the
 * way of a call; that step does, and opens the stacks. */
#ifndef HAKMEM_LIFE_SETTINGS_H
#define HAKMEM_LIFE_SETTINGS_H

#include "base/atomic.h"
#include "base/defs.h"
#include "front/cache.h"

struct cache;

enum changed {
    CHANGED = 1,
    CHANGE_NO_OPTION,
    CHANGE_NOT_ALLOWED,
    CHANGE_AT_START_ONLY,
    CHANGE_NOT_NOW
};

/* Changes the option; AUTO where it may be so. `mine` is the calling thread's cache, or null. Locks
 * of the slow path must not be held. */
enum changed option_change(const char *name, size_t value, struct cache *mine);

enum order { ORDER_PURGE = 1, ORDER_SET, ORDER_RECORD, ORDER_MARK };

#define ORDER_NAME 40

struct orders {
    uint32_t asked;  /* counts orders: who gives one fills in the others, and then adds 1; atomic */
    uint32_t taken;  /* the same, of who obeys; atomic */
    uint32_t done;   /* the same, when it is done; atomic */
    uint32_t order;  /* what is to be done */
    uint32_t answer; /* an enum changed */
    uint64_t value;  /* of the option */
    uint64_t result; /* bytes given back; of ORDER_SET whether a heap profile was on before; of
                      * ORDER_RECORD an errno */
    char name[ORDER_NAME]; /* of the option or the mark; of ORDER_RECORD a folder */
};

extern struct orders orders HIDDEN;

static inline bool orders_waiting(void)
{
    return unlikely(load_relaxed(&orders.asked) != load_relaxed(&orders.taken)) ||
           unlikely(load_relaxed(&closed_from_outside) != 0);
}

/* Does what was asked for, and opens what was closed for it. */
void orders_obey(struct cache *mine);

#endif

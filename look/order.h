/* Orders to a process: to give back memory, to change an option, to record its calls. */
#ifndef HAKMEM_LOOK_ORDER_H
#define HAKMEM_LOOK_ORDER_H

#include "sheet/heap.h"

enum order_kind { ORDER_PURGE = 1, ORDER_SET, ORDER_RECORD, ORDER_MARK };

struct order {
    enum order_kind kind;
    const char *name; /* of the option; or the folder to record to */
    uint64_t value;
    uint64_t result; /* bytes that went back; of ORDER_SET whether a heap profile was on before */
};

/* Gives the order, and waits until it is done. On failure says why. */
bool order_give(struct target *t, const struct tables *tables, int pid, struct order *order,
                struct why *why);

#endif

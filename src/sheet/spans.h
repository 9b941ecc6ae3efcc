/* Spans of addresses that do not overlap, such as memory that was counted; each with a number. A
 * tree that chance balances (a treap). The chance is a secret of this process: who is looked at
 * chooses the addresses, and could else make a list of the tree. */
#ifndef HAKMEM_SHEET_SPANS_H
#define HAKMEM_SHEET_SPANS_H

#include <stdbool.h>
#include <stdint.h>

#include "sheet/room.h"

struct span {
    uint64_t start, end;
    uint32_t number;
    uint64_t rank; /* by chance; no span's is above its parent's */
    struct span *left, *right;
};

struct spans {
    struct room *room;
    struct span *root;
    uint64_t chance;
};

/* Empty; spans lie in the room. */
void spans_start(struct spans *spans, struct room *room);

/* Whether any of [start, end) lies in a span. */
bool spans_meet(const struct spans *spans, uint64_t start, uint64_t end);

/* Adds one; false where it overlaps one, or there is no memory. */
bool spans_add(struct spans *spans, uint64_t start, uint64_t end, uint32_t number);

/* The first that begins at the address or above; null if none does. */
const struct span *spans_from(const struct spans *spans, uint64_t at);

#endif

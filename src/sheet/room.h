/* Memory of a look, straight from the kernel: the heap that is looked at may be the own one, and
 * must not change by it. It is zero, and all of it goes back at once. */
#ifndef HAKMEM_SHEET_ROOM_H
#define HAKMEM_SHEET_ROOM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct room {
    struct region *regions;
    char *at;
    size_t left;
    bool short_of; /* there was none */
};

/* Null, and `short_of`, where the kernel gives none. */
void *room_get(struct room *room, size_t bytes);

/* An array that can hold one more than `count` members of `each` bytes; the same, or a copy twice
 * as long. */
void *room_grown(struct room *room, void *array, size_t count, size_t *most, size_t each);

void room_release(struct room *room);

/* ---- spans ----
 *
 * Spans of addresses that do not overlap, such as memory that was counted; each with a number. A
 * tree that chance balances (a treap). The chance is a secret of this process: who is looked at
 * chooses the addresses, and could else make a list of the tree. */

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

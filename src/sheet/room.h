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

#endif

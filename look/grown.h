/* Arrays that grow. */
#ifndef HAKMEM_LOOK_GROWN_H
#define HAKMEM_LOOK_GROWN_H

#include <stddef.h>
#include <stdlib.h>

/* The array, which may have moved, with room for one more than count; null without memory, and then
 * the array stays as it is. */
static inline void *grown(void *array, size_t count, size_t *room, size_t each)
{
    if (count < *room)
        return array;
    size_t more = *room == 0 ? 1024 : 2 * *room;
    void *to = realloc(array, more * each);
    if (to != NULL)
        *room = more;
    return to;
}

#endif

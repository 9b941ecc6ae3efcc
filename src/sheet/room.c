#define _GNU_SOURCE
#include "sheet/room.h"

#include <string.h>
#include <sys/mman.h>

#include "os/calls.h"

#define REGION ((size_t)1 << 20)
#define ALIGN ((size_t)16)
#define FIRST 64 /* members of an array */

struct region {
    struct region *next;
    size_t bytes;
};

void *room_get(struct room *room, size_t bytes)
{
    if (bytes > SIZE_MAX / 4) {
        room->short_of = true;
        return NULL;
    }
    bytes = (bytes + ALIGN - 1) & ~(ALIGN - 1);
    if (bytes > room->left) {
        size_t length = (bytes + 2 * sizeof(struct region) + REGION - 1) & ~(REGION - 1);
        long start = CALL(SYS_mmap, NULL, length, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        struct region *region = (struct region *)start;
        if (CALL_FAILED(start)) {
            room->short_of = true;
            return NULL;
        }
        *region = (struct region){room->regions, length};
        room->regions = region;
        room->at = (char *)region + 2 * sizeof *region;
        room->left = length - 2 * sizeof *region;
    }
    void *got = room->at;
    room->at += bytes;
    room->left -= bytes;
    return got;
}

void *room_grown(struct room *room, void *array, size_t count, size_t *most, size_t each)
{
    if (count < *most)
        return array;
    size_t more = *most == 0 ? FIRST : 2 * *most;
    void *to = room_get(room, more * each);
    if (to == NULL)
        return NULL;
    if (count > 0)
        memcpy(to, array, count * each);
    *most = more;
    return to;
}

void room_release(struct room *room)
{
    for (struct region *region = room->regions; region != NULL;) {
        struct region *next = region->next;
        CALL(SYS_munmap, region, region->bytes);
        region = next;
    }
    *room = (struct room){0};
}

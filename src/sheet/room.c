#define _GNU_SOURCE
#include "sheet/room.h"

#include <string.h>
#include <sys/auxv.h>
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

void spans_start(struct spans *spans, struct room *room)
{
    *spans = (struct spans){.room = room};
    const void *random = (const void *)getauxval(AT_RANDOM); /* 16 bytes of the kernel's */
    if (random != NULL)
        memcpy(&spans->chance, random, sizeof spans->chance);
}

bool spans_meet(const struct spans *spans, uint64_t start, uint64_t end)
{
    for (const struct span *span = spans->root; span != NULL;
         span = end <= span->start ? span->left : span->right)
        if (start < span->end && end > span->start)
            return true;
    return false;
}

static uint64_t drawn(struct spans *spans)
{
    spans->chance = spans->chance * 6364136223846793005u + 1442695040888963407u;
    return spans->chance >> 16;
}

/* Takes a tree apart: what lies below the address, and the rest. */
static void split(struct span *tree, uint64_t at, struct span **below, struct span **rest)
{
    while (tree != NULL)
        if (tree->start < at) {
            *below = tree;
            below = &tree->right;
            tree = tree->right;
        } else {
            *rest = tree;
            rest = &tree->left;
            tree = tree->left;
        }
    *below = NULL;
    *rest = NULL;
}

bool spans_add(struct spans *spans, uint64_t start, uint64_t end, uint32_t number)
{
    if (end <= start || spans_meet(spans, start, end))
        return false;
    struct span *span = room_get(spans->room, sizeof *span);
    if (span == NULL)
        return false;
    *span = (struct span){start, end, number, drawn(spans), NULL, NULL};
    struct span **to = &spans->root;
    while (*to != NULL && (*to)->rank >= span->rank)
        to = start < (*to)->start ? &(*to)->left : &(*to)->right;
    split(*to, start, &span->left, &span->right);
    *to = span;
    return true;
}

const struct span *spans_from(const struct spans *spans, uint64_t at)
{
    const struct span *first = NULL;
    for (const struct span *span = spans->root; span != NULL;)
        if (span->start >= at) {
            first = span;
            span = span->left;
        } else {
            span = span->right;
        }
    return first;
}

/* What a heap is read with: a look, while it lasts. Here are pages and lists, which blocks are free
 * in threads' caches and transfer caches, and a slab's blocks and pages; walk.c has the walk, and
 * what else there is. */
#ifndef HAKMEM_SHEET_LOOK_H
#define HAKMEM_SHEET_LOOK_H

#include <string.h>

#include "sheet/heap.h"

#define WORD 8
#define SLAB_SLICES_MOST 64
#define SLAB_BLOCKS_MOST 8192
#define SLICE_BITS_MOST 17
#define SLAB_PAGES_MOST (((size_t)SLAB_SLICES_MOST << SLICE_BITS_MOST) / PAGE)

#define IN_TRANSFER UINT32_MAX /* in place of a cache's number */

struct slab {
    uint64_t base, bytes;
    unsigned cls;
    uint32_t size, blocks, usable;
    uint32_t places; /* blocks that can be handed out */
    bool free_whole; /* its one block of whole slices is free, in some cache */
    uint64_t words[SLAB_BLOCKS_MOST / 64];
    uint8_t present[SLAB_PAGES_MOST];     /* whether a page is resident */
    uint8_t used[SLAB_PAGES_MOST];        /* whether a block in it is taken */
    uint16_t taken[SLAB_PAGES_MOST];      /* bytes of such blocks */
    uint64_t live[SLAB_BLOCKS_MOST / 64]; /* which blocks the program has */
};

/* Not on the stack, which may be that of a small thread. */
struct look {
    struct target *t;
    struct heap *heap;
    struct slab slab;               /* that is counted */
    unsigned char descriptor[1024]; /* that is read */
    uint64_t words[PAGE / WORD];    /* of the map */
    unsigned char *cache;           /* that is read */
    size_t cache_room;              /* of the heap's array of them */
    uint32_t generation;            /* that living threads' caches have */
    struct spans
        cached;         /* free blocks, by their first byte; the number of the cache that has one */
    struct spans seen;  /* memory that was counted */
    struct spans homes; /* superslabs' descriptors, by their first byte */
    uint64_t found;     /* slabs, huge blocks and superslabs */
    uint64_t walked;    /* slices below this address were looked at */
};

static inline uint64_t word_at(const void *from, uint32_t at)
{
    uint64_t word;
    memcpy(&word, (const char *)from + at, sizeof word);
    return word;
}

static inline uint32_t half_at(const void *from, uint32_t at)
{
    uint32_t half;
    memcpy(&half, (const char *)from + at, sizeof half);
    return half;
}

static inline uint16_t quarter_at(const void *from, uint32_t at)
{
    uint16_t quarter;
    memcpy(&quarter, (const char *)from + at, sizeof quarter);
    return quarter;
}

/* ---- look.c ---- */

/* Tells the mappings that these bytes are the heap's, and returns how many pages of them are
 * resident; `present` gets a byte for each, if it is given. */
uint64_t claim(struct look *look, uint64_t start, uint64_t bytes, uint8_t *present);

/* Members of a list: `head`, which is outside of the heap, has the address of the first, and each
 * has by `next_at` that of the next; the last has null, or the head's. Ends where a member can't be
 * read or makes no sense. A list may change meanwhile: a member that goes to another one leads
 * round that one for ever. So one member is remembered, and a later one after twice as many steps.
 */
void list_walk(struct look *look, uint64_t head, uint32_t next_at,
               bool (*member)(struct look *, uint64_t node));

/* False where any page of these bytes was counted before. */
static inline bool count_once(struct look *look, uint64_t start, uint64_t end)
{
    return end <= UINT64_MAX - PAGE && spans_add(&look->seen, start & ~(uint64_t)(PAGE - 1),
                                                 (end + PAGE - 1) & ~(uint64_t)(PAGE - 1), 0);
}

/* Adds to a line, and to that of a class where one is given. */
static inline void count(struct look *look, struct class_sum *sum, enum heap_line line,
                         uint64_t bytes)
{
    look->heap->resident[line] += bytes;
    if (sum != NULL)
        sum->resident[line] += bytes;
}

/* A block is in use. */
static inline void heard(struct look *look, uint64_t start, uint64_t bytes)
{
    struct heap_listener *listener = look->heap->listener;
    if (listener != NULL)
        listener->block(listener, start, bytes);
}

/* Reads all caches. */
void caches_read(struct look *look);

/* Counts the slab whose descriptor is at `at`, which begins at the slice; false where there is
 * none. */
bool slab_count(struct look *look, uint64_t at, uint64_t slice, bool free_whole);

#endif

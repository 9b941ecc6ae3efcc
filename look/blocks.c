#include "blocks.h"

#include <stdlib.h>

#include "grown.h"

#define CLUSTER_GAP ((uint64_t)1 << 30) /* bytes between two clusters, at least */
#define SHIFT_LEAST 12

void blocks_add(struct blocks *blocks, uint64_t start, uint64_t bytes)
{
    struct block *all = grown(blocks->all, blocks->count, &blocks->room, sizeof *all);
    if (all != NULL)
        blocks->all = all;
    if (all == NULL || blocks->count >= BLOCKS_MOST) {
        blocks->short_of = true;
        return;
    }
    all[blocks->count++] = (struct block){start, bytes, bytes, NO_BLOCK, STATE_UNKNOWN};
}

static int by_start(const void *a, const void *b)
{
    const struct block *left = a;
    const struct block *right = b;
    return left->start < right->start ? -1 : left->start > right->start;
}

/* Most of the time they are. */
static bool in_order(const struct blocks *blocks)
{
    for (size_t i = 1; i < blocks->count; i++)
        if (blocks->all[i - 1].start > blocks->all[i].start)
            return false;
    return true;
}

/* Of the blocks from `from` to before `to`. */
static bool cluster_add(struct blocks *blocks, size_t from, size_t to)
{
    struct cluster *clusters =
        grown(blocks->clusters, blocks->cluster_count, &blocks->cluster_room, sizeof *clusters);
    if (clusters == NULL)
        return false;
    blocks->clusters = clusters;
    const struct block *last = &blocks->all[to - 1];
    struct cluster c = {
        .start = blocks->all[from].start, .end = last->start + last->bytes, .shift = SHIFT_LEAST};
    while ((c.end - c.start) >> c.shift > 2 * (to - from) + 1024)
        c.shift++;
    size_t steps = (size_t)((c.end - c.start) >> c.shift) + 1;
    c.first = malloc((steps + 1) * sizeof *c.first);
    if (c.first == NULL)
        return false;
    size_t block = from;
    for (size_t i = 0; i <= steps; i++) {
        while (block < to && blocks->all[block].start < c.start + ((uint64_t)i << c.shift))
            block++;
        c.first[i] = (uint32_t)block;
    }
    clusters[blocks->cluster_count++] = c;
    return true;
}

bool blocks_index(struct blocks *blocks)
{
    if (blocks->short_of)
        return false;
    if (!in_order(blocks))
        qsort(blocks->all, blocks->count, sizeof *blocks->all, by_start);
    for (size_t from = 0, to; from < blocks->count; from = to) {
        for (to = from + 1; to < blocks->count; to++) {
            const struct block *before = &blocks->all[to - 1];
            if (blocks->all[to].start - before->start > CLUSTER_GAP + before->bytes)
                break;
        }
        if (!cluster_add(blocks, from, to))
            return false;
    }
    return true;
}

uint32_t blocks_find(const struct blocks *blocks, uint64_t at)
{
    for (size_t i = 0; i < blocks->cluster_count; i++) {
        const struct cluster *c = &blocks->clusters[i];
        if (at - c->start >= c->end - c->start)
            continue;
        size_t step = (size_t)((at - c->start) >> c->shift);
        /* The last that begins at the address or before: at least one does, the cluster's first. */
        uint32_t low = c->first[step];
        uint32_t high = c->first[step + 1];
        while (low < high) {
            uint32_t middle = low + (high - low) / 2;
            if (blocks->all[middle].start <= at)
                low = middle + 1;
            else
                high = middle;
        }
        const struct block *block = &blocks->all[low - 1];
        return at - block->start < block->bytes ? low - 1 : NO_BLOCK;
    }
    return NO_BLOCK;
}

uint32_t blocks_leader(struct blocks *blocks, uint32_t block)
{
    uint32_t leader = block;
    while (blocks->all[leader].state != leader)
        leader = blocks->all[leader].state;
    for (uint32_t next; block != leader; block = next) {
        next = blocks->all[block].state;
        blocks->all[block].state = leader;
    }
    return leader;
}

void blocks_end(struct blocks *blocks)
{
    for (size_t i = 0; i < blocks->cluster_count; i++)
        free(blocks->clusters[i].first);
    free(blocks->clusters);
    free(blocks->all);
    *blocks = (struct blocks){0};
}

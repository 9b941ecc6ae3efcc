/* The blocks of a process that are in use: which one an address points into, and whether anything
 * refers to it. */
#ifndef HAKMEM_LOOK_BLOCKS_H
#define HAKMEM_LOOK_BLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NO_BLOCK UINT32_MAX /* and no site */

struct block {
    uint64_t start;
    uint64_t bytes;     /* that the program may use */
    uint64_t requested; /* less, or the same where it is not known */
    uint32_t site;
    uint32_t state; /* one of the below, or the block through which it is lost: itself, or another
                       one that refers to it, over some steps */
};
#define STATE_UNKNOWN UINT32_MAX
#define STATE_REACHED (UINT32_MAX - 1)
#define BLOCKS_MOST (UINT32_MAX - 2)

/* Blocks that lie near each other, and for each step of addresses the first of them that begins in
 * it or after it. */
struct cluster {
    uint64_t start, end;
    unsigned shift;
    uint32_t *first; /* one more than there are steps */
};

struct blocks {
    struct block *all; /* by address, once they are indexed */
    size_t count, room;
    struct cluster *clusters;
    size_t cluster_count, cluster_room;
    bool short_of; /* memory */
};

void blocks_add(struct blocks *blocks, uint64_t start, uint64_t bytes);

/* After the last one was added. False without memory. */
bool blocks_index(struct blocks *blocks);

/* The block that has this address, or NO_BLOCK. */
uint32_t blocks_find(const struct blocks *blocks, uint64_t at);

/* The block through which a lost block is lost. */
uint32_t blocks_leader(struct blocks *blocks, uint32_t block);

void blocks_end(struct blocks *blocks);

#endif

/* The memory of a target, read in pieces. What is read again is kept while there is room. */
#ifndef HAKMEM_LOOK_MEMORY_H
#define HAKMEM_LOOK_MEMORY_H

#include "sheet/target.h"

#define PIECE ((size_t)65536)

struct memory {
    struct target *t;
    struct piece {
        uint64_t at; /* of its first byte; odd: the place is free */
        unsigned char *bytes;
    } * pieces; /* a hash table */
    size_t count, room;
    size_t left; /* pieces that may still be kept */
    unsigned char *scratch;
};

/* False without memory. */
bool memory_start(struct memory *memory, struct target *t);
void memory_end(struct memory *memory);

/* What is at an address, up to the end of its piece: `*bytes` becomes smaller. Pages that were
 * never touched read as zero. Null where nothing is there. With `keep` it stays valid; otherwise up
 * to the next call. */
const unsigned char *memory_at(struct memory *memory, uint64_t at, size_t *bytes, bool keep);

/* Copies, and keeps the pieces; false where something is not there. */
bool memory_read(struct memory *memory, uint64_t at, void *to, size_t bytes);

#endif

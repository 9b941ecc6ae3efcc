/* Blocks that know what they must contain.
 *
 * A record stands outside the heap and says what a block is; the block is filled with words that
 * follow from its address, size and serial number, so that a block which overlaps another, was
 * moved wrongly, or was written to by the allocator is found out. A block of 32 bytes or more also
 * carries size and serial in its first two words: a wrong block then says which one it is.
 *
 * Blocks up to BLOCK_WHOLE bytes are filled and checked whole; larger ones in their head, their
 * tail and in sampled lines between, so that 10^8 operations stay affordable. */
#ifndef HAKMEM_TESTS_BLOCK_H
#define HAKMEM_TESTS_BLOCK_H

#include "support.h"

#include <stdbool.h>

#define BLOCK_WHOLE (32 * KiB)

/* What every block's address must be a multiple of: 16. Set it to 8 before the start to try
 * allocators that align blocks below 16 bytes to 8. */
extern size_t least_alignment;

enum maker {
    MADE_BY_MALLOC,
    MADE_BY_CALLOC,
    MADE_BY_REALLOC,
    MADE_BY_ALIGNED_ALLOC,
    MADE_BY_POSIX_MEMALIGN,
    MADE_BY_MEMALIGN,
};

struct record {
    unsigned char *block; /* NULL: no block */
    size_t size;          /* bytes that are filled, at least what was asked for */
    uint64_t serial;      /* thread << 32 | count of that thread */
    uint64_t weight;      /* bytes counted against the budget of large blocks */
    enum maker maker;
};

/* Who is at work, for the failure text; one per thread. */
struct worker {
    unsigned number;
    uint32_t made; /* serial numbers given out */
};

/* Asks the allocator for a block, checks what it gives (alignment, usable size, zeroes) and fills
 * it. `alignment` is read by the aligned makers alone. `all_usable`: the block is taken to be as
 * large as malloc_usable_size says, when that is not far more. `check_all`: a large calloc is
 * read whole, not in samples. */
struct block_wish {
    enum maker maker;
    size_t size;
    size_t alignment;
    bool all_usable;
    bool check_all;
};

void block_make(struct record *r, const struct block_wish *wish, struct worker *me);

/* Ends the program unless the block contains what it must. */
void block_check(const struct record *r, const struct worker *me);

/* Gives the block a new serial number of this thread and fills it anew. */
void block_fill_anew(struct record *r, struct worker *me);

/* Checks, reallocates, checks that the content came along, fills anew. */
void block_resize(struct record *r, size_t size, bool all_usable, struct worker *me);

/* Checks and frees; the record is empty afterwards. An empty record is left alone. */
void block_free(struct record *r, const struct worker *me);

/* Ends the program unless the heap is whole by its own walk; false where there is none. */
bool expect_sound_heap(const char *when);

static inline unsigned block_thread(const struct record *r) { return (unsigned)(r->serial >> 32); }

#endif

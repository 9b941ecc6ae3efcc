/* A heap, read by its tables: what its memory is used for, in bytes that are resident. */
#ifndef HAKMEM_LOOK_HEAP_H
#define HAKMEM_LOOK_HEAP_H

#include "tables.h"

/* What resident memory of the heap is used for. */
#define HEAP_LINES(LINE)                                                                   \
    LINE(LIVE, "live", "blocks that the program has")                                      \
    LINE(ROUNDING, "rounding", "the ends of large blocks, and what is left over in slabs") \
    LINE(HOLES, "holes", "free blocks in pages that hold others in use")                   \
    LINE(FREE_PAGES, "free_pages", "pages in slabs without a block in use")                \
    LINE(CACHES, "caches", "free blocks in threads' caches")                               \
    LINE(TRANSFER, "transfer", "free blocks on their way from thread to thread")           \
    LINE(SLICES, "slices", "free slices that keep their pages")                            \
    LINE(HUGE_PAGES, "huge_pages", "free slices never used: huge pages brought them")      \
    LINE(KEPT, "kept", "mappings of freed blocks above 2 MiB, kept for the next")          \
    LINE(METADATA, "metadata", "descriptors, arrays and maps of hakmem, its code and data")

#define HEAP_LINE_ENUM(line, name, words) LINE_##line,
enum heap_line { HEAP_LINES(HEAP_LINE_ENUM) HEAP_LINE_COUNT };
#undef HEAP_LINE_ENUM

struct class_sum {
    uint32_t size, blocks, slices; /* of a block, in a slab, of a slab */
    uint64_t slabs;
    uint64_t live, cached, in_transfer, free; /* blocks */
    uint64_t resident[HEAP_LINE_COUNT];
};

struct cache_sum {
    uint64_t blocks, bytes;
    bool living;
};

struct heap {
    struct tables tables;
    uint64_t resident[HEAP_LINE_COUNT];
    uint64_t live_bytes; /* resident or not, as are all that follow */
    uint64_t free_bytes;
    uint64_t huge_blocks, huge_bytes;
    uint64_t superslabs;
    struct class_sum classes[CLASSES_MOST];
    struct cache_sum *caches; /* the newest first */
    size_t cache_count;
    uint64_t freed, returned, taken_again; /* counters of the process, bytes */
    uint64_t skipped; /* descriptors that made no sense: changed meanwhile, or damaged */
};

/* Reads the heap; mappings learn what of them is claimed. The tables are in place. False where it
 * makes no sense, or there is no memory. */
bool heap_read(struct target *t, struct heap *heap, char *why, size_t room);

void heap_release(struct heap *heap);

#endif

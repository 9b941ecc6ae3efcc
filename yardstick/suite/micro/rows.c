/*
 * Micro: what single calls cost, by size, by order, by kind. Iterations are such that a row takes
 * 0.02 to 0.4 seconds with a good allocator; yardstick/docs/micro.md says why each row is here.
 *
 * Names state parameters: pair-64k is of 64 KiB, fifo-1000-64 of 1000 blocks of 64 bytes,
 * aligned-4k-100 of 100 bytes aligned to 4 KiB.
 */
#include "work.h"

#define ROW(title, kin, function, how_much, reason, measures, ...) \
    ROW_WITH(, title, kin, how_much, measures, function, reason, __VA_ARGS__)

/* Content is read back. */
#define CONTENT_ROW(title, kin, function, how_much, reason, measures, ...) \
    ROW_WITH(READS, title, kin, how_much, measures, function, reason, __VA_ARGS__)

/* A row that holds little is not judged by its peak, which is that of any process with the
 * allocator in it: the same figure over and over would be a third of what a mean of memory is
 * made of. "start" in the group memory has it once. */
#define HEAP "time peak"
#define NO_HEAP "time"

#define QUICK TIER_QUICK
#define STANDARD TIER_STANDARD
#define FULL TIER_FULL

#define PAIR(title, how_much, reason, turns, size)                                        \
    ROW(title, "pair-by-size", work_pair, how_much, reason, NO_HEAP, .iterations = turns, \
        .min = size, .max = size)

#define TOUCHED(title, how_much, reason, turns, size)                           \
    ROW(title, "touched-by-size", work_pair_touched, how_much, reason, NO_HEAP, \
        .iterations = turns, .min = size, .max = size, .touch = TOUCH_PAGES)

/* `turns` batches of `count` blocks. */
#define BATCH(title, kin, how_much, reason, measures, turns, count, size, freed)                 \
    ROW(title, kin, work_batch, how_much, reason, measures, .iterations = turns, .slots = count, \
        .min = size, .max = size, .touch = TOUCH_FIRST, .order = freed)

#define GROW(title, how_much, reason, measures, turns, count, low, high, step, bytes)        \
    CONTENT_ROW(title, "realloc-by-way", work_grow, how_much, reason, measures,              \
                .iterations = turns, .slots = count, .min = low, .max = high, .batch = step, \
                .touch = bytes)

#define CALLOC(title, how_much, reason, turns, size)                             \
    CONTENT_ROW(title, "calloc-by-size", work_calloc, how_much, reason, NO_HEAP, \
                .iterations = turns, .min = size, .max = size, .touch = TOUCH_PAGES)

#define FRESH(title, how_much, reason, count, size)                                       \
    CONTENT_ROW(title, "calloc-fresh-by-size", work_calloc_fresh, how_much, reason, HEAP, \
                .iterations = 1, .slots = count, .min = size, .max = size, .touch = TOUCH_FIRST)

#define ALIGNED(title, how_much, reason, measures, turns, count, alignment, size)                \
    CONTENT_ROW(title, "aligned", work_aligned, how_much, reason, measures, .iterations = turns, \
                .slots = count, .batch = alignment, .min = size, .max = size,                    \
                .touch = TOUCH_FIRST)

#define THREADS(title, how_much, reason, measures, turns, count)                                   \
    ROW(title, "thread-start", work_thread_start, how_much, reason, measures, .iterations = turns, \
        .slots = count, .min = 16, .max = 1024, .touch = TOUCH_FIRST)

#define FORK(title, how_much, reason, turns, count, pairs)                                   \
    ROW(title, "fork", work_fork, how_much, reason, "time fork-faults", .iterations = turns, \
        .slots = count, .batch = pairs, .min = 16, .max = 1024, .touch = TOUCH_BOTH)

const struct row micro_rows[] = {
    /* 64 bytes are pair-64 in the seed set. */
    PAIR("pair-8", STANDARD, "the smallest block there is", 40000000, 8),
    PAIR("pair-16", FULL, "a size of its own in many allocators", 40000000, 16),
    PAIR("pair-24", FULL, "what a small node takes, not a power of two", 40000000, 24),
    PAIR("pair-32", STANDARD, "small strings and nodes", 40000000, 32),
    PAIR("pair-48", FULL, "between powers of two", 40000000, 48),
    PAIR("pair-128", STANDARD, "small objects", 40000000, 128),
    PAIR("pair-192", FULL, "between powers of two", 40000000, 192),
    PAIR("pair-256", STANDARD, "small objects", 40000000, 256),
    PAIR("pair-512", STANDARD, "small buffers", 40000000, 512),
    PAIR("pair-768", FULL, "between powers of two", 40000000, 768),
    PAIR("pair-1k", STANDARD, "the end of what the system's malloc keeps for a thread", 40000000,
         1 * KIB),
    PAIR("pair-2k", STANDARD, "medium blocks", 40000000, 2 * KIB),
    PAIR("pair-3k", FULL, "between powers of two", 40000000, 3 * KIB),
    PAIR("pair-4k", STANDARD, "a page", 40000000, 4 * KIB),
    PAIR("pair-8k", STANDARD, "a buffer of stdio's size and more", 40000000, 8 * KIB),
    PAIR("pair-12k", FULL, "between powers of two", 40000000, 12 * KIB),
    PAIR("pair-16k", STANDARD, "the largest that some allocators keep for a thread", 40000000,
         16 * KIB),
    PAIR("pair-32k", STANDARD, "the end of small classes in many allocators", 40000000, 32 * KIB),
    PAIR("pair-48k", FULL, "beyond the end of small classes", 8000000, 48 * KIB),
    PAIR("pair-64k", QUICK, "runs of pages instead of classes", 8000000, 64 * KIB),
    PAIR("pair-128k", STANDARD, "the system's first threshold for mapping", 8000000, 128 * KIB),
    PAIR("pair-256k", STANDARD, "above it", 8000000, 256 * KIB),
    PAIR("pair-512k", FULL, "runs of many pages", 2000000, 512 * KIB),
    PAIR("pair-1m", QUICK, "a large buffer", 1500000, 1 * MIB),
    PAIR("pair-2m", STANDARD, "as large as a huge page", 500000, 2 * MIB),
    PAIR("pair-4m", FULL, "a mapping of its own in many allocators", 500000, 4 * MIB),
    PAIR("pair-8m", STANDARD, "a mapping of its own: kept, or made anew each time", 500000,
         8 * MIB),
    PAIR("pair-16m", FULL, "the same, larger", 500000, 16 * MIB),
    PAIR("pair-32m", STANDARD, "the system's last threshold for mapping", 100000, 32 * MIB),
    PAIR("pair-64m", STANDARD, "above every threshold", 100000, 64 * MIB),

    TOUCHED("touched-4k", FULL, "a page, written", 30000000, 4 * KIB),
    TOUCHED("touched-16k", STANDARD, "four pages, written", 20000000, 16 * KIB),
    TOUCHED("touched-64k", STANDARD, "are pages given back between a free and the next malloc",
            2000000, 64 * KIB),
    TOUCHED("touched-256k", STANDARD, "the same above the system's first threshold", 500000,
            256 * KIB),
    TOUCHED("touched-1m", STANDARD, "a large buffer, written", 100000, 1 * MIB),
    TOUCHED("touched-4m", STANDARD, "the same, a mapping of its own in many allocators", 10000,
            4 * MIB),
    TOUCHED("touched-16m", STANDARD, "the same, larger", 600, 16 * MIB),
    TOUCHED("touched-64m", STANDARD, "the same, above every threshold", 24, 64 * MIB),

    BATCH("fifo-10-64", "fifo-64", FULL, "well inside a thread's cache", NO_HEAP, 3000000, 10, 64,
          ORDER_SAME),
    BATCH("fifo-100-64", "fifo-64", STANDARD, "about as deep as a thread's cache", NO_HEAP, 500000,
          100, 64, ORDER_SAME),
    BATCH("fifo-1000-64", "fifo-64", STANDARD, "deeper than a thread's cache", NO_HEAP, 50000, 1000,
          64, ORDER_SAME),
    BATCH("fifo-10000-64", "fifo-64", FULL, "deep: refill and flush all the way", NO_HEAP, 4000,
          10000, 64, ORDER_SAME),
    BATCH("lifo-10-64", "lifo-64", FULL, "a stack, well inside a thread's cache", NO_HEAP, 3000000,
          10, 64, ORDER_REVERSE),
    BATCH("lifo-100-64", "lifo-64", STANDARD, "a stack, about as deep as a thread's cache", NO_HEAP,
          500000, 100, 64, ORDER_REVERSE),
    BATCH("lifo-1000-64", "lifo-64", STANDARD, "a stack, deeper than a thread's cache", NO_HEAP,
          50000, 1000, 64, ORDER_REVERSE),
    BATCH("lifo-10000-64", "lifo-64", FULL, "a deep stack", NO_HEAP, 4000, 10000, 64,
          ORDER_REVERSE),
    BATCH("random-10-64", "random-64", FULL, "any order, well inside a thread's cache", NO_HEAP,
          3000000, 10, 64, ORDER_SHUFFLED),
    BATCH("random-100-64", "random-64", STANDARD, "any order, about as deep as a thread's cache",
          NO_HEAP, 500000, 100, 64, ORDER_SHUFFLED),
    BATCH("random-1000-64", "random-64", QUICK, "any order, deeper than a thread's cache", NO_HEAP,
          50000, 1000, 64, ORDER_SHUFFLED),
    BATCH("random-10000-64", "random-64", STANDARD, "any order, deep", NO_HEAP, 1500, 10000, 64,
          ORDER_SHUFFLED),
    BATCH("fifo-1000-1k", "batch-1k", STANDARD, "a heap of 1 MiB made and dropped", NO_HEAP, 10000,
          1000, 1 * KIB, ORDER_SAME),
    BATCH("lifo-1000-1k", "batch-1k", FULL, "the same, unwound like a stack", NO_HEAP, 10000, 1000,
          1 * KIB, ORDER_REVERSE),
    BATCH("random-1000-1k", "batch-1k", STANDARD, "the same, in any order", NO_HEAP, 10000, 1000,
          1 * KIB, ORDER_SHUFFLED),
    BATCH("fifo-1000-16k", "batch-16k", STANDARD, "16 MiB made and dropped: do pages stay", HEAP,
          600, 1000, 16 * KIB, ORDER_SAME),
    BATCH("lifo-1000-16k", "batch-16k", FULL, "the same, unwound like a stack", HEAP, 600, 1000,
          16 * KIB, ORDER_REVERSE),
    BATCH("random-1000-16k", "batch-16k", STANDARD, "the same, in any order", HEAP, 150, 1000,
          16 * KIB, ORDER_SHUFFLED),

    ROW("fill-free-48", "fill-free", work_fill_free, STANDARD,
        "a million blocks filled and freed: what the first rounds pay for giving back",
        "first-round time peak", .iterations = 10, .slots = 1000000, .min = 48, .max = 48,
        .touch = TOUCH_FIRST),

    GROW("realloc-step-16", STANDARD, "a string that grows by appending: alone", NO_HEAP, 8000000,
         1, 16, 16 * KIB, 16, TOUCH_BOTH),
    GROW("realloc-step-16-of-8", QUICK, "the same, eight at once: none is the heap's last", NO_HEAP,
         5000000, 8, 16, 16 * KIB, 16, TOUCH_BOTH),
    GROW("realloc-double", STANDARD, "a vector that doubles: eight at once, up to 1 MiB", HEAP,
         50000, 8, 16, 1 * MIB, 0, TOUCH_BOTH),
    GROW("realloc-mapped", STANDARD, "1 MiB grows to 64 by steps of 1: copied, or pages moved",
         HEAP, 128, 1, 1 * MIB, 64 * MIB, 1 * MIB, TOUCH_PAGES),
    CONTENT_ROW("realloc-shrink", "realloc-by-way", work_shrink, STANDARD,
                "64 KiB cut in halves down to 16 B: in place, or a copy", NO_HEAP,
                .iterations = 1000000, .slots = 8, .min = 16, .max = 64 * KIB, .touch = TOUCH_BOTH),
    CONTENT_ROW("realloc-same", "realloc-by-way", work_resize_same, FULL,
                "to the size it has: the call and the look at the block", NO_HEAP,
                .iterations = 10000000, .slots = 100, .min = 100, .max = 100, .touch = TOUCH_BOTH),

    CALLOC("calloc-64", QUICK, "small: cleared by the call", 40000000, 64),
    CALLOC("calloc-1k", STANDARD, "as long as clearing takes", 20000000, 1 * KIB),
    CALLOC("calloc-32k", STANDARD, "used before: cleared again", 600000, 32 * KIB),
    CALLOC("calloc-1m", STANDARD, "used before: cleared, or given back and faulted in", 3000,
           1 * MIB),
    CALLOC("calloc-16m", FULL, "the same, beyond what is kept", 100, 16 * MIB),
    FRESH("calloc-fresh-64", STANDARD, "never used: zero already, with all it takes to know that",
          2000000, 64),
    FRESH("calloc-fresh-4k", STANDARD, "the same: whose first byte alone is written", 40000,
          4 * KIB),
    FRESH("calloc-fresh-1m", FULL, "the same: a page of 256 is touched", 256, 1 * MIB),

    ALIGNED("aligned-64-200", STANDARD, "a cache line's alignment", NO_HEAP, 20000000, 1, 64, 200),
    ALIGNED("aligned-4k-4k", STANDARD, "a page for direct input and output", NO_HEAP, 20000000, 1,
            4 * KIB, 4 * KIB),
    ALIGNED("aligned-2m-2m", STANDARD, "a huge page's alignment", NO_HEAP, 200000, 1, 2 * MIB,
            2 * MIB),
    ALIGNED("aligned-64-200-of-1000", FULL, "a thousand held: what alignment wastes", NO_HEAP,
            20000, 1000, 64, 200),
    ALIGNED("aligned-4k-100-of-1000", STANDARD, "small blocks on pages: what alignment wastes",
            HEAP, 2000, 1000, 4 * KIB, 100),

    CONTENT_ROW("usable-size", "others", work_usable, FULL, "how a program learns what it may use",
                NO_HEAP, .iterations = 30000000, .slots = 100, .min = 100, .max = 100,
                .touch = TOUCH_FIRST),
    ROW("free-null", "others", work_free_null, FULL, "what programs free most often: nothing",
        NO_HEAP, .iterations = 100000000, .min = 8, .max = 8),

    ROW("thread-idle", "thread-start", work_thread_idle, STANDARD,
        "a thread that allocates nothing: what the system and the allocator's hooks take", NO_HEAP,
        .iterations = 8000, .min = 16, .max = 1024),
    THREADS("thread-start-1", QUICK, "one block: a thread's heap made and taken down", NO_HEAP,
            8000, 1),
    THREADS("thread-start-100", STANDARD, "a hundred blocks of 16-1024 B", NO_HEAP, 8000, 100),
    THREADS("thread-start-10000", STANDARD, "ten thousand: what is left in a cache goes back", HEAP,
            600, 10000),
    ROW("thread-first-64", "thread-start", work_thread_first, STANDARD,
        "a thread's first malloc, by its own clock", "first-malloc", .iterations = 8000, .min = 64,
        .max = 64, .touch = TOUCH_FIRST),

    FORK("fork-1m", STANDARD, "fork and wait with a heap of 1 MiB", 1500, 2000, 0),
    FORK("fork-64m", STANDARD, "the same with 64 MiB: as long as there are pages to copy", 150,
         130000, 0),
    FORK("fork-1m-100", QUICK, "the child takes and frees 100 blocks: pages copied on writing",
         1000, 2000, 100),
    {0},
};

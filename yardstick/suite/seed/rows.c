/*
 * The seed set. What a row leaves out is 1 (seed, slots, threads). Iterations are such that a row
 * takes 0.2 to 0.6 seconds with a good allocator on a core of about 3 GHz; docs/benchmarks.md says
 * where each row comes from.
 */
#include "suite.h"

#define QUICK TIER_QUICK
#define STANDARD TIER_STANDARD
#define ROW(title, kin, level, function, reason, ...) \
    ROW_WITH(, title, kin, level, NULL, function, reason, __VA_ARGS__)
#define CONTENT_ROW(title, kin, level, function, reason, ...) \
    ROW_WITH(READS, title, kin, level, NULL, function, reason, __VA_ARGS__)

/* Random mixed of small blocks on one thread. */
#define MIXED(title, level, reason, count, low, high, bytes)                               \
    ROW(title, "mixed", level, work_mixed, reason, .iterations = 30000000, .slots = count, \
        .min = low, .max = high, .touch = bytes)

#define BATCH(title, level, reason, freed)                                                        \
    ROW(title, "batch", level, work_batch, reason, .iterations = 5000, .slots = 10000, .min = 16, \
        .max = 256, .touch = TOUCH_NONE, .order = freed)

#define QUEUE(title, level, reason, low, high, freed)                                      \
    ROW(title, "queue", level, work_queue, reason, .iterations = 16000000, .slots = 16384, \
        .batch = 512, .min = low, .max = high, .touch = TOUCH_BOTH, .threads = 2, .order = freed)

#define EXCHANGE(title, level, reason, turns, count, low, high, team)                         \
    ROW(title, "exchange", level, work_exchange, reason, .iterations = turns, .slots = count, \
        .min = low, .max = high, .touch = TOUCH_FIRST, .threads = team)

#define OWN(title, level, reason, turns, count, low, high, team)                                \
    ROW(title, "own", level, work_own, reason, .iterations = turns, .slots = count, .min = low, \
        .max = high, .touch = TOUCH_FIRST, .threads = team)

#define LARSON(title, level, reason, turns, team)                                        \
    ROW(title, "larson", level, work_larson, reason, .iterations = turns, .slots = 5000, \
        .batch = 100, .min = 8, .max = 1000, .touch = TOUCH_BOTH, .threads = team)

#define LARGE(title, level, reason, turns, count, low, high)                            \
    ROW(title, "large", level, work_mixed, reason, .iterations = turns, .slots = count, \
        .min = low, .max = high, .touch = TOUCH_FIRST, .check = true)

const struct row seed_rows[] = {
    ROW("pair-64", "pair", STANDARD, work_pair, "the shortest way through malloc and free",
        .iterations = 150000000, .min = 64, .max = 64),
    ROW("pair-random", "pair", STANDARD, work_pair_random, "sizes that no branch predictor knows",
        .iterations = 60000000, .min = 16, .max = 1024),
    ROW("pair-tiny", "pair", STANDARD, work_pair_random, "what very small programs do",
        .iterations = 60000000, .min = 16, .max = 48),

    MIXED("mixed-400", STANDARD, "a small heap, all of it in the cache", 400, 16, 1024, TOUCH_BOTH),
    MIXED("mixed-8192", QUICK, "a heap about as large as the second-level cache", 8192, 16, 1024,
          TOUCH_BOTH),
    MIXED("mixed-400-first", STANDARD, "the same, first byte written only", 400, 16, 1024,
          TOUCH_FIRST),
    MIXED("mixed-8192-first", STANDARD, "the same, first byte written only", 8192, 16, 1024,
          TOUCH_FIRST),
    MIXED("mixed-128", STANDARD, "one size alone: aliasing of equal strides", 8192, 128, 128,
          TOUCH_FIRST),
    MIXED("mixed-256", STANDARD, "one size alone: aliasing of equal strides", 8192, 256, 256,
          TOUCH_FIRST),
    MIXED("mixed-512", STANDARD, "one size alone: aliasing of equal strides", 8192, 512, 512,
          TOUCH_FIRST),
    MIXED("mixed-1024", STANDARD, "one size alone: aliasing of equal strides", 8192, 1024, 1024,
          TOUCH_FIRST),
    MIXED("mixed-8k", QUICK, "sizes above those that lists of small blocks serve", 256, 1 * KIB,
          8 * KIB, TOUCH_BOTH),
    MIXED("mixed-8k-first", STANDARD, "the same, first byte written only", 256, 1 * KIB, 8 * KIB,
          TOUCH_FIRST),

    ROW("replace-8192", "replace", STANDARD, work_replace, "free at random, take at once",
        .iterations = 40000000, .slots = 8192, .min = 16, .max = 1024, .touch = TOUCH_BOTH),
    ROW("replace-100k", "replace", STANDARD, work_replace, "a heap far beyond cache and TLB",
        .iterations = 15000000, .slots = 100000, .min = 16, .max = 1024, .touch = TOUCH_BOTH),

    BATCH("batch-in-order", STANDARD, "build and drop: bursts deeper than a thread's cache",
          ORDER_SAME),
    BATCH("batch-reverse", STANDARD, "the same, unwound like a stack", ORDER_REVERSE),
    BATCH("batch-random", STANDARD, "the same, freed where locality is lost", ORDER_SHUFFLED),
    ROW("bulk-64", "batch", STANDARD, work_batch, "a burst of one size", .iterations = 500,
        .slots = 100000, .min = 64, .max = 64, .touch = TOUCH_FIRST, .order = ORDER_SAME),

    OWN("own-1k-2t", QUICK, "threads that share nothing but the allocator", 20000000, 8192, 16,
        1024, 2),
    OWN("own-1k-4t", STANDARD, "the same, more threads than two cores", 10000000, 8192, 16, 1024,
        4),
    OWN("own-32k-2t", STANDARD, "medium blocks on threads", 15000000, 64, 8 * KIB, 32 * KIB, 2),
    OWN("own-32k-4t", STANDARD, "medium blocks, more threads than two cores", 8000000, 64, 8 * KIB,
        32 * KIB, 4),

    LARSON("larson-2t", QUICK, "blocks outlive the thread that made them", 40000000, 2),
    LARSON("larson-4t", STANDARD, "the same, more threads than two cores", 20000000, 4),

    QUEUE("queue", QUICK, "every block freed by a thread that never allocates", 64, 64, ORDER_SAME),
    QUEUE("queue-shuffled", STANDARD, "the same, each batch freed in shuffled order", 64, 64,
          ORDER_SHUFFLED),
    QUEUE("queue-1k", STANDARD, "the same, random sizes", 16, 1024, ORDER_SAME),

    EXCHANGE("exchange-1k-2t", STANDARD, "most frees are of foreign blocks", 15000000, 1024, 16,
             1024, 2),
    EXCHANGE("exchange-1k-4t", STANDARD, "the same, more threads than two cores", 8000000, 1024, 16,
             1024, 4),
    EXCHANGE("exchange-8k-2t", STANDARD, "foreign blocks of medium size", 8000000, 256, 1 * KIB,
             8 * KIB, 2),
    EXCHANGE("exchange-8k-4t", STANDARD, "the same, more threads than two cores", 4000000, 256,
             1 * KIB, 8 * KIB, 4),

    LARGE("large-64k", STANDARD, "just above the small classes", 15000000, 64, 64 * KIB, 64 * KIB),
    LARGE("large-256k", STANDARD, "above the system's first threshold for mapping", 12000000, 64,
          256 * KIB, 256 * KIB),
    LARGE("large-2m", STANDARD, "page faults of blocks given back too early", 4000000, 16, 2 * MIB,
          2 * MIB),
    LARGE("large-mixed", QUICK, "random sizes that must be split and joined", 3000000, 64, 64 * KIB,
          1 * MIB),
    LARGE("huge-mixed", STANDARD, "mappings of their own, kept or not", 1000000, 16, 2 * MIB,
          8 * MIB),

    CONTENT_ROW("realloc-grow", "realloc", STANDARD, work_realloc,
                "buffers that grow by half until freed", .iterations = 1000000, .slots = 16,
                .min = 16, .max = 256 * KIB, .touch = TOUCH_BOTH),
    CONTENT_ROW("chase-48", "chase", STANDARD, work_chase,
                "where blocks lie after churn: ns a node", .iterations = 30, .slots = 1000000,
                .min = 48, .max = 48),
    {0},
};

/*
 * Tail: how long the slowest single calls take. Quantiles are over all calls of malloc and free of
 * the row; yardstick/docs/tail.md says what each row does and how its figures are defined.
 */
#include "tail.h"

/* Time and peak of such a row are mostly those of the clock and of its tables. */
#define ROW(title, function, reason, ...)                                                         \
    ROW_WITH(, title, "tail", TIER_STANDARD, "p99.9 worst cpu-p99.9 cpu-worst", function, reason, \
             __VA_ARGS__)

const struct row tail_rows[] = {
    ROW("tail-mixed", work_tail_mixed, "small blocks: the way from a thread's cache to the pages",
        .iterations = 2000000, .slots = 8192, .min = 16, .max = 1 * KIB, .touch = TOUCH_FIRST),
    ROW("tail-large", work_tail_mixed, "large blocks: split and joined, mapped and given back",
        .iterations = 100000, .slots = 64, .min = 64 * KIB, .max = 1 * MIB, .touch = TOUCH_PAGES),
    /* 128 MiB. */
    ROW("tail-survivors", work_tail_survivors,
        "most of a heap freed at random: which calls pay for giving it back", .iterations = 1000000,
        .slots = 29127, .batch = 256, .min = 1 * KIB, .max = 8 * KIB, .touch = TOUCH_PAGES),
    ROW("tail-threads", work_tail_threads, "four threads that free each other's blocks: locks",
        .iterations = 300000, .slots = 1024, .min = 16, .max = 1 * KIB, .touch = TOUCH_FIRST,
        .threads = 4),
    {0},
};

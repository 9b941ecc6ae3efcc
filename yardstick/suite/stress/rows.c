/*
 * Stress: what servers do to a heap when much happens at once. Memory is judged beside time: the
 * peak, and what is resident when all blocks are freed and all threads gone.
 * yardstick/docs/stress.md says where each row comes from.
 */
#include "suite.h"

#define JUDGED "time peak resident-end"
#define ROW(title, kin, importance, function, reason, ...) \
    ROW_WITH(, title, kin, importance, JUDGED, function, reason, __VA_ARGS__)

/* Blocks are read. */
#define CONTENT_ROW(title, kin, importance, function, reason, ...) \
    ROW_WITH(READS, title, kin, importance, JUDGED, function, reason, __VA_ARGS__)

#define KEEP_ALL(title, importance, reason, turns, high, team)                                     \
    CONTENT_ROW(title, "keep", importance, work_keep, reason, .iterations = (turns) / (team),      \
                .slots = 128 / (team), .min = 16, .max = high, .touch = TOUCH_BOTH, .check = true, \
                .threads = team)

#define TIDE(title, importance, reason, turns, low, high, team)                               \
    CONTENT_ROW(title, "tide", importance, work_tide, reason, .iterations = (turns) / (team), \
                .slots = 64, .min = low, .max = high, .touch = TOUCH_BOTH, .check = true,     \
                .threads = team)

#define CHURN(title, importance, reason, lives, burst, keeps, team)                     \
    ROW(title, "churn", importance, work_churn, reason, .iterations = (lives) / (team), \
        .slots = burst, .batch = keeps, .min = 16, .max = 1024, .touch = TOUCH_BOTH,    \
        .threads = team)

const struct row stress_rows[] = {
    KEEP_ALL("keep-64k-4t", TIER_STANDARD, "keep, resize, hand over, drop: 16 B to 64 KiB", 1600000,
             64 * KIB, 4),
    KEEP_ALL("keep-4m-4t", TIER_QUICK, "keep, resize, hand over, drop: 16 B to 4 MiB", 16000,
             4 * MIB, 4),
    KEEP_ALL("keep-4m-16t", TIER_FULL, "the same on a crowd of threads", 16000, 4 * MIB, 16),

    TIDE("tide-1m-2t", TIER_STANDARD, "32 KiB to 1 MiB: all made, all dropped, again", 200,
         32 * KIB, 1 * MIB, 2),
    TIDE("tide-1m-8t", TIER_STANDARD, "the same, more threads than two cores", 200, 32 * KIB,
         1 * MIB, 8),

    ROW("flood-64-3to1", "flood", TIER_STANDARD, work_stream,
        "64-byte blocks in batches, many producers, one consumer, a long queue",
        .iterations = 4000000, .slots = 262144, .batch = 1024, .min = 64, .max = 64,
        .touch = TOUCH_BOTH, .makers = 3, .threads = 4),

    CHURN("churn-2t", TIER_QUICK, "bursts by threads that then die", 4000, 2000, 0, 2),
    CHURN("churn-leave-2t", TIER_STANDARD, "the same, an eighth outlives its thread", 4000, 2000, 8,
          2),
    CHURN("churn-leave-32t", TIER_STANDARD, "the same, 32 lines of threads at once", 4000, 2000, 8,
          32),
    {0},
};

/*
 * Memory: what stays resident, and where blocks lie. yardstick/docs/memory.md says what each row
 * does, where it comes from, and how its figures are defined.
 */
#include "memory.h"

/* All read what they wrote. Bytes are written at both ends, so that a stamp can be verified. */
#define ROW(title, kin, function, size, measures, reason, ...)                                \
    ROW_WITH(READS, title, kin, TIER_##size, measures, function, reason, .touch = TOUCH_BOTH, \
             __VA_ARGS__)

#define SAMPLED .sampled = true,
/* One whose memory over time makes a picture. */
#define SAMPLED_ROW(title, kin, function, size, measures, reason, ...)           \
    ROW_WITH(READS SAMPLED, title, kin, TIER_##size, measures, function, reason, \
             .touch = TOUCH_BOTH, __VA_ARGS__)

/* `iterations` are KiB of live blocks before most are freed. */
#define SURVIVORS(title, size, reason, kib, low, high, ...)                       \
    ROW(title, "survivors", work_survivors, size, "left-0s left-1s free", reason, \
        .iterations = kib, .min = low, .max = high, .wait = 1000, __VA_ARGS__)

/* One of `stays` stays, `times` replaced. */
#define TURNOVER(title, reason, stays, times)                                 \
    ROW(title, "turnover", work_turnover, STANDARD, "time end-ratio", reason, \
        .iterations = 128 * KIB, .slots = stays, .batch = times, .min = 64, .max = 1 * KIB)

#define PHASED "time peak-ratio average-ratio end-ratio"
#define SERVED "time peak-ratio average-ratio night-ratio"

/* `iterations` are ticks of a day, `batch` the days. */
#define SERVER(title, size, reason, team, ticks, days)                                   \
    SAMPLED_ROW(title, "server", work_server, size, SERVED, reason, .iterations = ticks, \
                .batch = days, .threads = team, .min = MIX_MIN, .max = MIX_MAX)

/* `iterations` are nodes, `batch` the passes. */
#define WALK(title, function, reason, nodes, passes, low, high)                                  \
    ROW(title, "walk", function, STANDARD, "time", reason, .iterations = nodes, .batch = passes, \
        .min = low, .max = high)

/* `iterations` are KiB of blocks. */
#define LIVE(title, reason, low, high)                                                         \
    ROW(title, "live", work_live, STANDARD, "live-ratio time", reason, .iterations = 64 * KIB, \
        .min = low, .max = high)

const struct row memory_rows[] = {
    SURVIVORS("survivors-32m-1k-8k", QUICK, "what comes back of a heap full of holes", 32 * KIB,
              1 * KIB, 8 * KIB),
    SURVIVORS("survivors-128m-1k-8k", STANDARD, "the same, larger than any cache of free memory",
              128 * KIB, 1 * KIB, 8 * KIB),
    SURVIVORS("survivors-128m-16-1k", STANDARD, "small blocks: hardly a page is left without one",
              128 * KIB, 16, 1 * KIB),
    SURVIVORS("survivors-128m-64k-1m", STANDARD, "large blocks: each hole could come back whole",
              128 * KIB, 64 * KIB, 1 * MIB),
    ROW("survivors-128m-1k-8k-4t", "survivors-4t", work_survivors_2s, STANDARD,
        "left-0s left-2s free", "threads free what others took", .iterations = 128 * KIB,
        .min = 1 * KIB, .max = 8 * KIB, .threads = 4, .wait = 2000),
    ROW("survivors-128m-16-1k-4t", "survivors-4t", work_survivors_2s, STANDARD,
        "left-0s left-2s free", "the same, small blocks", .iterations = 128 * KIB, .min = 16,
        .max = 1 * KIB, .threads = 4, .wait = 2000),
    SURVIVORS("survivors-128m-1k-8k-calls", STANDARD,
              "a little work while idle: some give back only when called", 128 * KIB, 1 * KIB,
              8 * KIB, .batch = 100),
    ROW("survivors-128m-1k-8k-10s", "survivors-10s", work_survivors_10s, FULL,
        "left-0s left-1s left-10s free", "a long idle time, as at night", .iterations = 128 * KIB,
        .min = 1 * KIB, .max = 8 * KIB, .wait = 10000),
    ROW("survivors-128m-64k-1m-10s", "survivors-10s", work_survivors_10s, FULL,
        "left-0s left-1s left-10s free", "large blocks over a long idle time",
        .iterations = 128 * KIB, .min = 64 * KIB, .max = 1 * MIB, .wait = 10000),
    ROW("survivors-128m-64k-1m-calls-10s", "survivors-10s", work_survivors_10s, FULL,
        "left-0s left-1s left-10s free", "the same, with a little work now and then",
        .iterations = 128 * KIB, .min = 64 * KIB, .max = 1 * MIB, .wait = 10000, .batch = 100),
    ROW("survivors-128m-16-1k-4t-10s", "survivors-10s", work_survivors_10s, FULL,
        "left-0s left-1s left-10s free", "small blocks of threads over a long idle time",
        .iterations = 128 * KIB, .min = 16, .max = 1 * KIB, .wait = 10000, .threads = 4),

    TURNOVER("turnover-2", "half of the blocks freed, then work goes on among the holes", 2, 60),
    TURNOVER("turnover-5", "four fifths freed: does work fill the holes, so that pages go back", 5,
             200),
    TURNOVER("turnover-10", "nine tenths freed", 10, 1500),

    SAMPLED_ROW("phases-shift", "phases", work_phases_shift, QUICK, PHASED,
                "sizes jump, some blocks of former sizes stay", .iterations = 32 * KIB, .batch = 12,
                .min = 64, .max = 64 * KIB),
    SAMPLED_ROW("phases-double", "phases", work_phases_double, STANDARD, PHASED,
                "sizes double, survivors stand where they hurt most", .iterations = 64 * KIB,
                .min = 32, .max = 32 * KIB),
    SAMPLED_ROW("records-grow", "phases", work_records, STANDARD, PHASED,
                "records that are rebuilt a little larger each time", .iterations = 60000,
                .batch = 24, .min = 64, .max = 4 * KIB),

    ROW("kept-300m", "kept", work_kept, STANDARD, "time faults peak",
        "large blocks come and go in a large heap: kept, or faulted in anew", .iterations = 300,
        .slots = 20, .min = 5 * MIB, .max = 25 * MIB),
    ROW("two-phases", "kept", work_two_phases, STANDARD, "time peak",
        "one large block, then as much in small ones: is the large one's memory used again",
        .iterations = 5, .slots = 44040, .min = 1000, .max = 40 * MIB),

    ROW("sleepers-256", "sleepers", work_sleepers, STANDARD, "thread-0s thread-2s",
        "caches of threads that used the heap once", .iterations = 4000, .slots = 256, .min = 16,
        .max = 1 * KIB, .threads = 256, .wait = 2000),
    ROW("sleepers-256-8k", "sleepers", work_sleepers, STANDARD, "thread-0s thread-2s",
        "the same, medium blocks", .iterations = 4000, .slots = 256, .min = 16, .max = 8 * KIB,
        .threads = 256, .wait = 2000),

    SERVER("server-4t-1d", QUICK, "requests, and what outlives them, under a load that falls", 4,
           6144, 1),
    SERVER("server-4t-2d", STANDARD, "the same, larger: does the night give back what noon took", 4,
           8192, 2),
    SERVER("server-1t-2d", STANDARD, "the same on one thread, nothing changes hands", 1, 16384, 2),
    SERVER("server-4t-12d", FULL, "the same over many days", 4, 8192, 12),

    WALK("walk-tree", work_walk_tree, "a tree built depth first: ns a node", 400000, 8, 40, 40),
    WALK("walk-vector", work_walk_vector, "objects visited in the order they came: ns each", 400000,
         8, 24, 128),
    WALK("walk-two", work_walk_two, "two lists that grew in turn, one walked: ns a node", 400000, 8,
         32, 160),
    WALK("walk-hash", work_walk_hash, "entries and keys found in random order: ns a look-up",
         200000, 4, 8, 64),

    LIVE("live-32", "what a small block costs beyond its bytes", 32, 32),
    LIVE("live-24-200", "rounding of small sizes", 24, 200),
    LIVE("live-4097", "a byte more than a page", 4097, 4097),
    LIVE("live-40k-200k", "rounding of large sizes", 40 * KIB, 200 * KIB),
    ROW("live-mix", "live", work_live_mix, STANDARD, "live-ratio time",
        "rounding and headers over a server's sizes", .iterations = 64 * KIB, .min = MIX_MIN,
        .max = MIX_MAX),

    ROW("start", "start", work_start, STANDARD, "start", "what the first block of a process costs",
        .iterations = 1, .min = 64, .max = 64),

    ROW("age-mix", "age", work_age, FULL, "time young-ratio old-ratio creep",
        "whether a steady heap grows with age", .iterations = 2000000, .slots = 100000,
        .min = MIX_MIN, .max = MIX_MAX),
    {0},
};

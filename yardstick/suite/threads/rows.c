/*
 * Across threads. A row's threads and, in a stream, its producers are in its name. Iterations are
 * such that a row takes 0.1 to 0.5 seconds with a good allocator on two cores of about 3 GHz, and
 * rows of one family do the same work in all, on however many threads; yardstick/docs/threads.md
 * says where each comes from.
 */
#include "suite.h"

#define ROW(title, kin, importance, measures, function, reason, ...) \
    ROW_WITH(, title, kin, importance, measures, function, reason, __VA_ARGS__)

#define STREAM(title, importance, reason, from, team, order_freed)                           \
    ROW(title, "stream", importance, "time peak", work_stream, reason,                       \
        .iterations = 6000000 / (from), .slots = 8192, .batch = 128, .min = 16, .max = 1024, \
        .touch = TOUCH_BOTH, .makers = from, .threads = team, .order = order_freed)

#define ALL_TO_ALL(title, importance, reason, team)                                               \
    ROW(title, "all-to-all", importance, "time peak", work_all_to_all, reason,                    \
        .iterations = 6000000 / (team), .batch = 64, .min = 16, .max = 1024, .touch = TOUCH_BOTH, \
        .threads = team)

/* Requests of each thread of the first stage; six blocks each, and the request itself. */
#define POOL(title, importance, reason, team)                                          \
    ROW_WITH(READS, title, "pool", importance, "time peak", work_pool, reason,         \
             .iterations = 600000 / ((team) / 3), .slots = 256, .batch = 8, .min = 16, \
             .max = 4096, .threads = team)

#define SHARING(title, kin, importance, function, reason, team)                           \
    ROW(title, kin, importance, "time", function, reason, .iterations = 4000000 / (team), \
        .slots = 8, .batch = 16, .min = 8, .max = 8, .threads = team)

#define SCALE_LOCAL(title, importance, reason, team)                           \
    ROW(title, "scale-local", importance, "time peak", work_own, reason,       \
        .iterations = 16000000 / (team), .slots = 256, .min = 16, .max = 1024, \
        .touch = TOUCH_FIRST, .threads = team)

#define SCALE_REMOTE(title, importance, reason, team)                                              \
    ROW(title, "scale-remote", importance, "time peak", work_ring, reason,                         \
        .iterations = 5000000 / (team), .batch = 64, .min = 16, .max = 1024, .touch = TOUCH_FIRST, \
        .threads = team)

const struct row threads_rows[] = {
    STREAM("stream-2to2", TIER_QUICK, "producers and consumers, every block freed elsewhere", 2, 4,
           ORDER_SAME),
    STREAM("stream-1to3", TIER_STANDARD, "one allocates, many free", 1, 4, ORDER_SAME),
    STREAM("stream-3to1", TIER_STANDARD, "many allocate, one frees", 3, 4, ORDER_SAME),
    STREAM("stream-2to2-shuffled", TIER_STANDARD, "each tray freed in shuffled order", 2, 4,
           ORDER_SHUFFLED),
    STREAM("stream-1to15", TIER_FULL, "one allocates for a crowd", 1, 16, ORDER_SAME),
    STREAM("stream-15to1", TIER_FULL, "one frees for a crowd", 15, 16, ORDER_SAME),

    ALL_TO_ALL("all-to-all-2t", TIER_STANDARD, "each allocates for the other", 2),
    ALL_TO_ALL("all-to-all-4t", TIER_QUICK, "each allocates for each", 4),
    ALL_TO_ALL("all-to-all-16t", TIER_FULL, "each allocates for each, in a crowd", 16),

    POOL("pool-3t", TIER_STANDARD, "requests through three stages, a thread each", 3),
    POOL("pool-6t", TIER_QUICK, "requests through three stages, two threads each", 6),
    POOL("pool-24t", TIER_FULL, "requests through three stages, eight threads each", 24),

    SHARING("share-active-2t", "share-active", TIER_STANDARD, work_sharing_active,
            "threads that allocate at once: are they given neighbours?", 2),
    SHARING("share-active-8t", "share-active", TIER_FULL, work_sharing_active,
            "threads that allocate at once: are they given neighbours?", 8),
    SHARING("share-passive-2t", "share-passive", TIER_QUICK, work_sharing_passive,
            "neighbours dealt out, freed, taken anew: does sharing go on?", 2),
    SHARING("share-passive-8t", "share-passive", TIER_FULL, work_sharing_passive,
            "neighbours dealt out, freed, taken anew: does sharing go on?", 8),

    SCALE_LOCAL("local-1t", TIER_STANDARD, "blocks of one's own: alone", 1),
    SCALE_LOCAL("local-2t", TIER_STANDARD, "blocks of one's own: more threads, the same work", 2),
    SCALE_LOCAL("local-4t", TIER_STANDARD, "blocks of one's own: more threads, the same work", 4),
    SCALE_LOCAL("local-8t", TIER_FULL, "blocks of one's own: more threads, the same work", 8),
    SCALE_LOCAL("local-16t", TIER_STANDARD, "blocks of one's own: more threads, the same work", 16),
    SCALE_LOCAL("local-32t", TIER_FULL, "blocks of one's own: more threads, the same work", 32),
    SCALE_LOCAL("local-64t", TIER_STANDARD, "blocks of one's own: more threads, the same work", 64),

    SCALE_REMOTE("remote-1t", TIER_STANDARD, "a ring of one: nothing is foreign yet", 1),
    SCALE_REMOTE("remote-2t", TIER_STANDARD, "each frees what its neighbour made", 2),
    SCALE_REMOTE("remote-4t", TIER_STANDARD, "each frees what its neighbour made", 4),
    SCALE_REMOTE("remote-8t", TIER_FULL, "each frees what its neighbour made", 8),
    SCALE_REMOTE("remote-16t", TIER_STANDARD, "each frees what its neighbour made", 16),
    SCALE_REMOTE("remote-32t", TIER_FULL, "each frees what its neighbour made", 32),
    SCALE_REMOTE("remote-64t", TIER_STANDARD, "each frees what its neighbour made", 64),
    {0},
};

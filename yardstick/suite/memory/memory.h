/*
 * What the rows about memory share.
 *
 *   usage.c           resident and live memory, sampled and at rest
 *   crew.c            threads that do one step after the other and stay
 *   work_survivors.c  most of a heap freed at random; what stays, at once and later
 *   work_turnover.c   the same, and then the program's work goes on
 *   work_phases.c     a heap whose sizes shift
 *   work_sleepers.c   threads that used the heap once
 *   work_server.c     requests whose blocks live short and long, under a load that rises and falls
 *   work_kept.c       what is kept of freed memory for the next blocks
 *   work_walk.c       time to walk what the allocator laid out
 *   work_live.c       resident over live of plain heaps; the first block; a heap of great age
 *
 * Resident is the process's anonymous memory above what it had before the row's first block, when
 * the row's own tables and stacks were already there; live is the sum of bytes asked for.
 */
#ifndef SUITE_MEMORY_H
#define SUITE_MEMORY_H

#include "block.h"
#include "random.h"

work_fn work_survivors, work_survivors_2s, work_survivors_10s;
/* `iterations` KiB of blocks, of which one of `slots` stays; these are replaced `batch` times. */
work_fn work_turnover;
work_fn work_phases_shift, work_phases_double, work_records, work_sleepers, work_server;
/* `slots` blocks made, then `iterations` random ones replaced. */
work_fn work_kept;
/* By turns one block of `max` bytes, and `slots` of `min` bytes. */
work_fn work_two_phases;
work_fn work_walk_tree, work_walk_vector, work_walk_two, work_walk_hash;
work_fn work_live, work_live_mix, work_start, work_age;

/* ---- usage.c; one thread at a time */

/* Bytes, but for the count. */
struct usage {
    uint64_t baseline;
    uint64_t peak_resident, peak_live;
    double resident_sum, live_sum;
};

/* After the row's own tables and threads are there, before its first block. */
void usage_start(struct usage *u);

/* While the row runs; gives the resident bytes. */
uint64_t usage_sample(struct usage *u, uint64_t live);

/* At rest, exactly; not part of peak and average. */
uint64_t usage_rest(const struct usage *u);

/* "peak-ratio" and "average-ratio". */
void usage_report(const struct usage *u, struct outcome *out);

void sleep_ms(uint64_t ms);

/* Own memory whose pages are there from now on. */
void *own_touched(size_t bytes);

/* ---- crew.c
 *
 * As many threads as the row has; a crew of one is the main thread itself.
 * They sleep between steps and at the end, their caches filled.
 */
struct crew;
typedef void crew_step(unsigned index, void *shared);

struct crew *crew_start(const struct params *p, void *shared);
void crew_do(struct crew *c, crew_step *step); /* returns when all have done it */
void crew_end(struct crew *c);

/* ---- blocks that are as resident as if written whole */

/* The size of the row's next block. */
static inline size_t size_next(const struct params *p, struct random *rng)
{
    return size_draw(random_next(rng), p->min, params_span(p));
}

/* How many blocks by these numbers it takes to reach so many bytes. */
static inline uint64_t blocks_needed(const struct params *p, struct random rng, uint64_t bytes)
{
    uint64_t n = 0;
    for (uint64_t had = 0; had < bytes; n++)
        had += size_next(p, &rng);
    return n;
}

/* Stamped, and a byte of each of its pages written. */
static inline void *filled_make(size_t size) { return block_make(size, TOUCH_PAGES, true); }

/* Of a stamped block, as asked for. */
static inline size_t filled_size(const void *block) { return block_size(block, (uintptr_t)block); }

/* Verifies in any case: rows about memory must not lose what they keep. Gives the size. */
static inline size_t filled_drop(void *block, const struct params *p)
{
    size_t size = filled_size(block);
    block_verify(block, p);
    free(block);
    return size;
}

/*
 * A size as in servers: mostly small, and from 256 B on a tail in which each doubling is 0.54 times
 * as frequent as the one before, so that it takes a little more bytes. Between 16 B and 256 KiB, in
 * steps of 8, on average 300 B. yardstick/docs/memory.md tells where the shares come from.
 */
static inline size_t mix_draw(uint64_t bits)
{
    /* Of 65536; the octave above 16 << i. The last is what remains. */
    static const uint16_t share[] = {21244, 19600, 10500, 5200, 2900, 1566, 846,
                                     457,   247,   133,   72,   39,   21};
    uint32_t left = bits & 0xffff;
    unsigned octave = 0;
    /* The smallest, of 16 B alone, are 4 %. */
    if (left < 2700)
        return 16;
    left -= 2700;
    while (octave < sizeof share / sizeof *share && left >= share[octave])
        left -= share[octave++];
    uint64_t low = UINT64_C(16) << octave;
    return low + (((bits >> 32) * (low / 8) >> 32) + 1) * 8;
}

enum { MIX_MIN = 16, MIX_MAX = 256 * 1024 };

#endif

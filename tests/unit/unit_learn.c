/* Learning: pure functions, tested with counters and with no clock except bytes freed. */
#include "unit.h"

#include <string.h>

#include "base/policy.h"
#include "front/stacks.h"
#include "learn/capacity.h"
#include "os/lock.h"

/* ---- capacities ---- */

/* The defaults, which tests may change. */
static struct policy bounds;

static struct capacity_seen seen_of(size_t size, size_t capacity)
{
    return (struct capacity_seen){.event = STACK_EMPTY,
                                  .size = size,
                                  .capacity = capacity,
                                  .first = 15,
                                  .held = 0,
                                  .share = {bounds.thread_bytes, SIZE_MAX}};
}

static void expect_step(struct capacity_seen seen, size_t blocks, enum capacity_reason why)
{
    struct capacity next = capacity_step(&seen, bounds.stack_bytes);
    EXPECT_EQUAL(next.blocks, blocks);
    EXPECT_EQUAL(next.why, why);
}

static void it_grows_when_empty_or_full(void)
{
    struct capacity_seen seen = seen_of(64, 15);
    expect_step(seen, 39, CAPACITY_MISSES);
    seen.event = STACK_FULL;
    expect_step(seen, 39, CAPACITY_OVERFLOWS);
}

static void it_grows_up_to_its_bounds(void)
{
    struct capacity_seen seen = seen_of(64, 15);
    size_t grown[16], steps = 0;
    for (;; steps++) {
        struct capacity next = capacity_step(&seen, bounds.stack_bytes);
        if (next.why == CAPACITY_FITS)
            break;
        EXPECT_EQUAL((next.blocks + 1) % ARRAY_LEAST, 0);
        EXPECT(next.blocks >= 2 * seen.capacity);
        EXPECT(next.blocks <= STACK_MOST);
        EXPECT(next.blocks * 64 <= bounds.stack_bytes || next.blocks < ARRAY_LEAST);
        grown[steps] = seen.capacity = next.blocks;
        EXPECT(steps < 15);
    }
    EXPECT_EQUAL(grown[0], 39);
    EXPECT_EQUAL(grown[steps - 1], 10239);

    seen = seen_of(64, 2559);
    seen.shared = true;
    EXPECT(5119 * 64 > LAW_SHARE_LEAST && LAW_FREES_A_LOOK * 64 < LAW_SHARE_LEAST);
    expect_step(seen, 2559, CAPACITY_FITS);
    seen.shared = false;
    expect_step(seen, 5119, CAPACITY_MISSES);

    expect_step(seen_of(32 * KiB, 39), 39, CAPACITY_FITS);  /* 79 would be 2.5 MiB */
    expect_step(seen_of(256 * KiB, 3), 9, CAPACITY_MISSES); /* the least array */
}

static void the_share_denies_growth_and_takes_back(void)
{
    struct capacity_seen seen = seen_of(1024, 15);
    seen.held = bounds.thread_bytes - 24 * KiB;
    expect_step(seen, 39, CAPACITY_MISSES);
    seen.held++;
    expect_step(seen, 19, CAPACITY_MISSES);
    seen.held = bounds.thread_bytes - 4 * KiB + 1;
    expect_step(seen, 15, CAPACITY_FITS);
    seen.capacity = 79;
    seen.held = bounds.thread_bytes + 1;
    expect_step(seen, 39, CAPACITY_SHARE);
    seen.capacity = 15;
    expect_step(seen, 15, CAPACITY_FITS); /* what is always kept */

    seen.held = 0;
    seen.share.weight = 512 * KiB;
    seen.weight = seen.share.weight - 24 * 2 * LAW_SHARE_REFILL; /* of 24 blocks */
    expect_step(seen, 39, CAPACITY_MISSES);
    seen.size = 2 * LAW_SHARE_REFILL;
    expect_step(seen, 39, CAPACITY_MISSES);
    seen.weight++;
    expect_step(seen, 19, CAPACITY_MISSES);
    seen.capacity = 79;
    seen.weight = seen.share.weight + 1;
    expect_step(seen, 39, CAPACITY_SHARE);

    seen = seen_of(1024, 15);
    seen.held = 15 * KiB;
    seen.share.bytes = 39 * KiB; /* thread_bytes, and what may be kept */
    expect_step(seen, 39, CAPACITY_MISSES);
    seen.share.bytes--;
    expect_step(seen, 19, CAPACITY_MISSES);
}

static void it_shrinks_for_others_blocks(void)
{
    struct capacity_seen seen = seen_of(256, 319);
    seen.event = STACK_FULL;
    seen.foreign = seen.passes = true;
    expect_step(seen, 128, CAPACITY_FOREIGN);
    seen.capacity = 128;
    expect_step(seen, 128, CAPACITY_FITS);
    seen.capacity = 39;
    expect_step(seen, 79, CAPACITY_OVERFLOWS); /* batches of others' blocks, too */
    seen.capacity = 128;
    seen.share.weight = LAW_TINY_PART * 64 * seen.size;
    expect_step(seen, 64, CAPACITY_FOREIGN); /* of many threads each may have less */
    seen.share.weight = SIZE_MAX;
    seen.size = 4096;
    expect_step(seen, 15, CAPACITY_FOREIGN);
}

static void where_blocks_pass_through_it_stays_small(void)
{
    struct capacity_seen seen = seen_of(1024, 19); /* 39 would be more than 32 KiB */
    seen.shared = seen.passes = true;
    expect_step(seen, 19, CAPACITY_FITS);
    seen.passes = false;
    expect_step(seen, 39, CAPACITY_MISSES);
    EXPECT_EQUAL(capacity_streak(0, false), STREAK_LONG); /* it never turned */
    EXPECT_EQUAL(capacity_streak(STREAK_LONG, false), STREAK_LONG);
    EXPECT_EQUAL(capacity_streak(STREAK_LONG, true), 1);
    EXPECT_EQUAL(capacity_streak(1, false), 2);
}

static void it_shrinks_where_a_thread_only_frees(void)
{
    struct capacity_seen seen = seen_of(256, 319);
    seen.event = STACK_FULL;
    seen.drains = true;
    expect_step(seen, 128, CAPACITY_DRAINS);
    seen.size = 16 * KiB;
    expect_step(seen, 15, CAPACITY_DRAINS);
    seen.first = 3;
    expect_step(seen, 9, CAPACITY_DRAINS); /* the least array */
}

/* Whatever is seen: in an array's room, above what is always kept, and only up where it may. */
static void any_step_is_within_bounds(void)
{
    struct policy before = bounds;
    for (unsigned i = 0; i < 200000; i++) {
        bounds.stack_bytes = next_random() % (2 * MiB);
        size_t first = 3 + next_random() % 13;
        struct capacity_seen seen = {
            .event = next_random() % 2,
            .shared = next_random() % 2 == 0,
            .foreign = next_random() % 4 == 0,
            .passes = next_random() % 4 == 0,
            .drains = next_random() % 4 == 0,
            .size = 16 + next_random() % (256 * KiB),
            .first = first,
            .capacity = first + next_random() % (10240 - first),
            .held = next_random() % (16 * MiB),
            .weight = next_random() % MiB,
            .share = {next_random() % (16 * MiB), next_random() % (2 * MiB)}};
        seen.passes |= seen.foreign;
        struct capacity next = capacity_step(&seen, bounds.stack_bytes);
        EXPECT(next.blocks >= first && next.blocks <= 10239);
        EXPECT(next.blocks <= seen.capacity || next.blocks <= STACK_MOST);
        EXPECT(next.blocks <= seen.capacity || next.blocks == capacity_round(next.blocks));
        EXPECT(next.blocks <= seen.capacity ||
               (seen.held + (next.blocks - seen.capacity) * seen.size <= seen.share.bytes &&
                seen.weight + (next.blocks - seen.capacity) * capacity_weight(seen.size) <=
                    seen.share.weight));
        EXPECT_EQUAL(next.why != CAPACITY_FITS, next.blocks != seen.capacity);
        /* The same again leads on and not back, but for what all stacks share. */
        bool up = next.blocks > seen.capacity, down = next.blocks < seen.capacity;
        seen.held += (next.blocks - seen.capacity) * seen.size;
        seen.weight += (next.blocks - seen.capacity) * capacity_weight(seen.size);
        seen.capacity = next.blocks;
        struct capacity then = capacity_step(&seen, bounds.stack_bytes);
        EXPECT(!up || then.blocks >= next.blocks);
        EXPECT(!down || next.why == CAPACITY_SHARE || then.blocks <= next.blocks);
        size_t fixed = capacity_fixed(seen.size, first, bounds.stack_bytes);
        EXPECT(fixed == first || fixed == capacity_round(fixed));
        EXPECT(fixed == first ||
               (fixed * seen.size <= bounds.stack_bytes && fixed <= STACK_MOST && fixed > first));
    }
    bounds = before;
}

/* ---- the journal ---- */

static void the_journal_keeps_the_newest(void)
{
    static struct lock guard = LOCK(PURGE); /* as who adds has one */
    lock_take(&guard);
    struct journal_entry e = {.subject = JOURNAL_STACK};
    EXPECT_EQUAL(journal_count(), 0);
    EXPECT(!journal_read(0, &e));
    for (size_t i = 0; i < JOURNAL_MOST + 10; i++) {
        e = (struct journal_entry){.subject = JOURNAL_STACK, .from = i, .to = 2 * i};
        journal_add(&e);
    }
    EXPECT_EQUAL(journal_count(), JOURNAL_MOST + 10);
    EXPECT(!journal_read(9, &e));
    EXPECT(!journal_read(JOURNAL_MOST + 10, &e));
    for (size_t i = 10; i < JOURNAL_MOST + 10; i++) {
        EXPECT(journal_read(i, &e));
        EXPECT_EQUAL(e.from, i);
        EXPECT_EQUAL(e.to, 2 * i);
    }
    lock_release(&guard);
}

int main(void)
{
    bounds = policy;
    it_grows_when_empty_or_full();
    it_grows_up_to_its_bounds();
    the_share_denies_growth_and_takes_back();
    it_shrinks_for_others_blocks();
    where_blocks_pass_through_it_stays_small();
    it_shrinks_where_a_thread_only_frees();
    any_step_is_within_bounds();
    the_journal_keeps_the_newest();
    puts("8 passed, 0 failed");
    return 0;
}

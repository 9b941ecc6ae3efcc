/* Learning: pure functions, tested with counters and with no clock except bytes freed. */
#include "unit.h"

#include <string.h>

#include "base/policy.h"
#include "front/adapt.h"
#include "learn/capacity.h"
#include "os/lock.h"

/* ---- capacities ---- */

/* The defaults, which tests may change. */
static struct policy bounds;

static struct capacity_seen seen_of(size_t size, size_t capacity)
{
    return (struct capacity_seen){.event = STACK_EMPTY,
                                  .history = {.streak = 2},
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

static void it_grows_when_missed_twice(void)
{
    struct capacity_seen seen = seen_of(64, 15);
    expect_step(seen, 39, CAPACITY_MISSES);
    seen.event = STACK_FULL;
    expect_step(seen, 39, CAPACITY_OVERFLOWS);
    seen.history.streak = 1;
    expect_step(seen, 15, CAPACITY_FITS);
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
    seen.history.before = 1;
    EXPECT(5119 * 64 > LAW_SHARE_LEAST && LAW_FREES_A_LOOK * 64 < LAW_SHARE_LEAST);
    expect_step(seen, 2559, CAPACITY_FITS);
    seen.burst = 9000;
    expect_step(seen, 2559, CAPACITY_FITS);
    seen.shared = false;
    expect_step(seen, 10239, CAPACITY_BURSTS);

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

static void it_shrinks_for_others_blocks_and_for_what_is_not_wanted(void)
{
    struct capacity_seen seen = seen_of(256, 319);
    seen.event = STACK_FULL;
    seen.drains = true;
    expect_step(seen, 128, CAPACITY_DRAINS);
    seen.size = 16 * KiB;
    expect_step(seen, 15, CAPACITY_DRAINS);
    seen.first = 3;
    expect_step(seen, 10, CAPACITY_DRAINS); /* the least array */
    seen.history = (struct capacity_history){
        .way = 2 * 1000, .before = 1000, .full = true, .bursts_return = true};
    expect_step(seen, 319, CAPACITY_FITS); /* it will come back */
    seen.history.way++;
    expect_step(seen, 10, CAPACITY_DRAINS); /* not this time */
    seen.history.way = UINT16_MAX;
    seen.history.before = 60000;
    expect_step(seen, 10, CAPACITY_DRAINS); /* it can't be told */
    seen.history = (struct capacity_history){.streak = 2};
    seen.first = 15;
    seen.size = 256;
    seen.foreign = true;
    expect_step(seen, 128, CAPACITY_FOREIGN);
    seen.capacity = 128;
    expect_step(seen, 128, CAPACITY_FITS);
    seen.capacity = 39;
    expect_step(seen, 79, CAPACITY_OVERFLOWS); /* batches of others' blocks, too */
    seen.history.streak = 1;
    expect_step(seen, 39, CAPACITY_FITS);
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
    seen.shared = true;
    expect_step(seen, 19, CAPACITY_FITS); /* it never turned */
    seen.history.before = 100;
    expect_step(seen, 39, CAPACITY_MISSES);
    seen.history.streak = 2;
    expect_step(seen, 39, CAPACITY_MISSES);
    seen.history.streak++;
    expect_step(seen, 19, CAPACITY_FITS); /* a long way */
    seen.history.streak = 2;
    seen.history.foreign_recent = 1;
    expect_step(seen, 19, CAPACITY_FITS); /* others' blocks were seen */
    seen.burst = 60;
    expect_step(seen, 79, CAPACITY_BURSTS); /* what is proved is proved */
    seen.burst = 0;
    seen.shared = false;
    expect_step(seen, 39, CAPACITY_MISSES);
}

/* So many events of one kind, each of half the stack. */
static size_t way_of(struct capacity_history *history, enum capacity_event event, unsigned events)
{
    size_t burst = 0;
    for (unsigned i = 0; i < events; i++) {
        size_t told = capacity_turn(history, event, 40);
        burst = told > burst ? told : burst;
        capacity_moved(history, 20, false);
    }
    return burst;
}

static void bursts_are_told_from_chance(void)
{
    struct capacity_history history = {0};
    size_t burst = 0;
    unsigned turns = 0;
    for (; burst == 0 && turns < 100; turns++)
        burst = way_of(&history, turns % 2 == 0 ? STACK_EMPTY : STACK_FULL, 10);
    EXPECT_EQUAL(burst, 240); /* 200 came and went, and the stack was full */
    EXPECT(history.bursts_return);
    way_of(&history, turns % 2 == 0 ? STACK_EMPTY : STACK_FULL, 1);
    way_of(&history, turns % 2 == 0 ? STACK_FULL : STACK_EMPTY, 1);
    EXPECT(!history.bursts_return);        /* a short way: it is over */
    EXPECT_EQUAL(turns, LAW_IN_A_ROW + 2); /* the first two ways were the first of their kind */

    /* Only one direction is long: nothing comes back. */
    history = (struct capacity_history){0};
    for (unsigned i = 0; i < 1000; i++) {
        EXPECT_EQUAL(way_of(&history, STACK_EMPTY, 10), 0);
        EXPECT_EQUAL(way_of(&history, STACK_FULL, 1), 0);
    }
    EXPECT_EQUAL(way_of(&history, STACK_EMPTY, 100000), 0);
    EXPECT_EQUAL(history.way, UINT16_MAX);

    /* Up and down by chance: seldom. */
    history = (struct capacity_history){0};
    unsigned bursts = 0;
    for (unsigned i = 0; i < 100000; i++)
        bursts += way_of(&history, next_random() % 2, 1) > 0;
    EXPECT(bursts < 20);
}

static void others_blocks_are_remembered_for_a_while(void)
{
    struct capacity_history history = {0};
    capacity_moved(&history, 1, true);
    for (unsigned i = 0; i < LAW_IN_A_ROW; i++) {
        EXPECT(history.foreign_recent > 0);
        capacity_moved(&history, 1, false);
    }
    EXPECT_EQUAL(history.foreign_recent, 0);
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
            .history = {.streak = next_random() % 8,
                        .before = next_random() % 2 * 100,
                        .way = next_random() % 65536,
                        .bursts_return = next_random() % 2,
                        .foreign_recent = next_random() % 2},
            .burst = next_random() % 4 == 0 ? next_random() % 131070 : 0,
            .shared = next_random() % 2 == 0,
            .foreign = next_random() % 4 == 0,
            .drains = next_random() % 4 == 0,
            .size = 16 + next_random() % (256 * KiB),
            .first = first,
            .capacity = first + next_random() % (10240 - first),
            .held = next_random() % (16 * MiB),
            .weight = next_random() % MiB,
            .share = {next_random() % (16 * MiB), next_random() % (2 * MiB)}};
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
        EXPECT(fixed == first || (fixed * seen.size <= bounds.stack_bytes &&
                                  fixed <= STACK_MOST && fixed > first));
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
    it_grows_when_missed_twice();
    it_grows_up_to_its_bounds();
    the_share_denies_growth_and_takes_back();
    it_shrinks_for_others_blocks_and_for_what_is_not_wanted();
    where_blocks_pass_through_it_stays_small();
    bursts_are_told_from_chance();
    others_blocks_are_remembered_for_a_while();
    any_step_is_within_bounds();
    the_journal_keeps_the_newest();
    puts("9 passed, 0 failed");
    return 0;
}

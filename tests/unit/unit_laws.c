/* What decides by the numbers of learn/laws.def, at the edges of each. Nothing here repeats a
 * number of the table, so every test holds for other values that make sense, too. */
#include "unit.h"

#include "heap/classes.h"
#include "learn/capacity.h"
#include "learn/compaction.h"
#include "learn/huge_starts.h"
#include "learn/idleness.h"
#include "learn/keep.h"
#include "learn/looks.h"
#include "learn/rate.h"
#include "learn/share.h"

/* ---- stacks ---- */

static void blocks_pass_between_threads_only(void)
{
    EXPECT(!capacity_passes(false, true, UINT8_MAX));
    EXPECT(capacity_passes(true, true, 0));
    EXPECT(!capacity_passes(true, false, LAW_CLEARLY));
    EXPECT(capacity_passes(true, false, LAW_CLEARLY + 1));
}

static void a_drain_is_more_than_the_stacks_could_use(void)
{
    EXPECT(!capacity_drains(0, 0));
    EXPECT(!capacity_drains(LAW_CLEARLY * MiB, MiB));
    EXPECT(capacity_drains(LAW_CLEARLY * MiB + 1, MiB));
}

static void a_batch_is_half_and_after_a_turn_few(void)
{
    const struct capacity_history turned = {.streak = 1}, later = {.streak = 2};
    const size_t large = 2 * (LAW_STACK_TURN_MOST + 1);
    EXPECT_EQUAL(capacity_batch(&later, 0), 0);
    EXPECT_EQUAL(capacity_batch(&later, 1), 1);
    EXPECT_EQUAL(capacity_batch(&later, large - 1), LAW_STACK_TURN_MOST + 1);
    EXPECT_EQUAL(capacity_batch(&turned, large - 1), LAW_STACK_TURN_MOST);
    for (size_t capacity = 1; capacity < 100; capacity++) {
        EXPECT(capacity_batch(&later, capacity) <= capacity);
        EXPECT_EQUAL(capacity_batch(&later, capacity), capacity_batch(&turned, capacity));
    }
}

static void a_block_weighs_its_bytes_up_to_a_bound(void)
{
    EXPECT_EQUAL(capacity_weight(16), 16);
    EXPECT_EQUAL(capacity_weight(LAW_WEIGHT_MOST), LAW_WEIGHT_MOST);
    EXPECT_EQUAL(capacity_weight(LAW_WEIGHT_MOST + 1), LAW_WEIGHT_MOST);
}

/* ---- a thread's share ---- */

static void threads_share_a_part_of_what_is_in_use(void)
{
    EXPECT_EQUAL(share_alone(MiB).bytes, MiB);
    EXPECT_EQUAL(share_alone(MiB).weight, SIZE_MAX);
    EXPECT_EQUAL(share_at_work(2, 0, SIZE_MAX, MiB).bytes, MiB);
    EXPECT_EQUAL(share_at_work(2, 0, SIZE_MAX, MiB).weight, LAW_SMALL_PART * LAW_SHARE_LEAST / 2);
    const size_t least = LAW_SMALL_PART * (size_t)LAW_SHARE_LEAST;
    const size_t used = 16 * LAW_SMALL_PART * least;
    EXPECT_EQUAL(share_at_work(2, used, SIZE_MAX, MiB).weight, 8 * least);
    /* However many there are. */
    EXPECT_EQUAL(share_at_work(1000000, used, SIZE_MAX, MiB).weight, LAW_SHARE_LEAST);
    /* Never more with more threads, and never less with more in use. */
    for (size_t awake = 2; awake < 200; awake++) {
        EXPECT(share_at_work(awake + 1, used, SIZE_MAX, MiB).weight <=
               share_at_work(awake, used, SIZE_MAX, MiB).weight);
        EXPECT(share_at_work(awake, used, SIZE_MAX, MiB).weight <=
               share_at_work(awake, 2 * used, SIZE_MAX, MiB).weight);
    }
}

static void in_a_crowd_a_share_grows_with_use(void)
{
    EXPECT(!share_is_crowd(LAW_CROWD - 1));
    EXPECT(share_is_crowd(LAW_CROWD));
    EXPECT_EQUAL(share_in_crowd(0, GiB).bytes, LAW_CROWD_SHARE);
    EXPECT_EQUAL(share_in_crowd(1, GiB).weight, LAW_CROWD_SHARE + LAW_CROWD_SHARE_OF_REFILL);
    const size_t most = (LAW_SHARE_LEAST - LAW_CROWD_SHARE) / LAW_CROWD_SHARE_OF_REFILL;
    EXPECT_EQUAL(share_in_crowd(most, GiB).bytes, LAW_SHARE_LEAST);
    EXPECT_EQUAL(share_in_crowd(1000 * most, GiB).bytes, LAW_SHARE_LEAST);
    EXPECT_EQUAL(share_in_crowd(1000 * most, KiB).bytes, KiB);
    EXPECT(!share_is_passed(LAW_CLEARLY * MiB, MiB));
    EXPECT(share_is_passed(LAW_CLEARLY * MiB + 1, MiB));
}

static void a_new_stack_in_a_crowd_holds_little(void)
{
    EXPECT_EQUAL(share_first(LAW_CROWD_FIRST, 15), 1);
    EXPECT_EQUAL(share_first(LAW_CROWD_FIRST / 2, 15), 2);
    EXPECT_EQUAL(share_first(16, 3), 3); /* not more than without a crowd */
    EXPECT_EQUAL(share_first((LAW_CLEARLY * LAW_CROWD_FIRST), 15), 1);
    EXPECT_EQUAL(share_first((LAW_CLEARLY * LAW_CROWD_FIRST) + 1, 15), 0);
}

static void who_has_given_nearly_all_back_has_little_left(void)
{
    EXPECT(share_little_left(0, 0));
    EXPECT(share_little_left(LAW_SHARE_LEAST, 0));
    EXPECT(!share_little_left(LAW_SHARE_LEAST + 1, 0));
    EXPECT(share_little_left(LAW_SHARE_LEAST + 1, LAW_SHARE_LEAST + 1));
    EXPECT(share_little_left((size_t)0 - LAW_SHARE_LEAST, 0)); /* a little of others' */
    EXPECT(!share_little_left((size_t)0 - LAW_SHARE_LEAST - 1, 0));
}

static void large_blocks_are_a_part_of_the_most_in_use(void)
{
    const size_t largest = 2 * MiB;
    EXPECT_EQUAL(share_of_large(1, 0, largest, GiB), largest);
    EXPECT_EQUAL(share_of_large(1, LAW_CLEARLY * 10 * MiB, largest, GiB), 10 * MiB);
    EXPECT_EQUAL(share_of_large(1, GiB, largest, MiB), LAW_CLEARLY * MiB);
    EXPECT_EQUAL(share_of_large(1, GiB, largest, 0), 0);
    for (size_t awake = 1; awake < 1000; awake++) {
        size_t each = share_of_large(awake, 0, largest, GiB);
        EXPECT(each <= largest && awake * each <= LAW_SMALL_PART * largest);
        EXPECT(awake > LAW_SMALL_PART || each == largest);
    }
}

/* ---- compaction ---- */

static void thin_slabs_compact(void)
{
    const size_t page = 4 * KiB, much = (size_t)LAW_CLEARLY * LAW_LITTLE;
    for (size_t size = 16; size <= page / LAW_CLEARLY; size *= 2) {
        size_t free = much / size;
        EXPECT(!compaction_begins(free, free, size, page));
        EXPECT(compaction_begins(free + 1, free + 1, size, page));
        EXPECT(compaction_begins(free + 1, LAW_CLEARLY * free, size, page));
        EXPECT(!compaction_begins(free + 1, LAW_CLEARLY * (free + 1), size, page));
    }
    EXPECT(!compaction_begins(GiB, GiB, page / LAW_CLEARLY + 16, page)); /* a page of its own */
}

static void slabs_are_thin_of_which_most_is_free(void)
{
    EXPECT(!compaction_thin(0, 100));
    EXPECT(!compaction_thin(100 / LAW_CLEARLY, 100));
    EXPECT(compaction_thin(100 / LAW_CLEARLY + 1, 100));
}

static void it_ends_when_little_is_free_or_a_small_share(void)
{
    const size_t size = 256, little = LAW_LITTLE / size;
    EXPECT(compaction_ends(little, little, size));
    EXPECT(!compaction_ends(little + 1, little + 1, size));
    size_t blocks = 100 * little;
    EXPECT(compaction_ends(blocks / LAW_CLEARLY / LAW_CLEARLY, blocks, size));
    EXPECT(!compaction_ends(blocks / LAW_CLEARLY / LAW_CLEARLY + 1, blocks, size));
    /* What has just begun does not end. */
    for (size_t free = 1; free < blocks; free++)
        EXPECT(!compaction_begins(free, blocks, size, 4 * KiB) ||
               !compaction_ends(free, blocks, size));
    EXPECT(!compaction_gained(LAW_LITTLE / LAW_CLEARLY - 1));
    EXPECT(compaction_gained(LAW_LITTLE / LAW_CLEARLY));
}

static void blocks_move_where_that_fills_a_slab(void)
{
    const size_t blocks = 100;
    /* What is free elsewhere must hold a slab's worth. */
    EXPECT(!compaction_moves(blocks / 2, blocks, blocks, 3 * blocks));
    EXPECT(compaction_moves(blocks / 2, blocks, blocks + 1, 3 * blocks));
    /* A full slab stays, and one that is clearly fuller than all ten together. */
    EXPECT(!compaction_moves(0, blocks, 5 * blocks, 10 * blocks));
    for (size_t free = 1; free <= blocks / LAW_CLEARLY; free++) {
        size_t all_free = 10 * LAW_CLEARLY * free;
        EXPECT(compaction_moves(free, blocks, all_free, 10 * blocks) == (all_free > blocks));
        EXPECT(!compaction_moves(free, blocks, all_free + 1, 10 * blocks));
    }
    /* Half of the class is free: slabs of which a quarter is free, or more, are left. */
    EXPECT(compaction_moves(blocks / 2 / LAW_CLEARLY, blocks, 50 * blocks, 100 * blocks));
    EXPECT(!compaction_moves(blocks / 2 / LAW_CLEARLY - 1, blocks, 50 * blocks, 100 * blocks));
}

/* ---- how much is kept, and for how long ---- */

static void little_is_kept_beside_use_and_more_where_it_was_needed(void)
{
    EXPECT_EQUAL(keep_limit(0, 0), LAW_LITTLE);
    const size_t even = LAW_KEEP_PART * (size_t)LAW_LITTLE;
    EXPECT_EQUAL(keep_limit(even, 0), even + LAW_LITTLE);
    EXPECT_EQUAL(keep_limit(10 * even, 0), 10 * even + 10 * LAW_LITTLE);
    EXPECT_EQUAL(keep_limit(0, MiB), LAW_LITTLE + MiB);
    EXPECT_EQUAL(keep_limit(0, GiB), LAW_LITTLE + LAW_KEEP_LEARNED_LEAST);
    EXPECT_EQUAL(keep_limit(100 * GiB, 100 * GiB),
                 100 * GiB + 100 * GiB / LAW_KEEP_PART + 100 * GiB / LAW_KEEP_LEARNED_PART);
    for (size_t most = 0; most < GiB; most += 3 * MiB)
        EXPECT(keep_limit(most, 0) < keep_limit(most + 1, 0));

    EXPECT(!keep_was_needed(0, 0, 0, 0, GiB));
    EXPECT(!keep_was_needed(MiB, MiB / LAW_CLEARLY - 1, 0, MiB, GiB));
    EXPECT(keep_was_needed(MiB, MiB / LAW_CLEARLY, 0, MiB, GiB));
    EXPECT(!keep_was_needed(MiB, MiB, MiB / LAW_PACE_MS, MiB, GiB));
    EXPECT(keep_was_needed(MiB, MiB, MiB / LAW_PACE_MS - 1, MiB, GiB));
    size_t most = keep_learned_most(GiB);
    EXPECT(keep_was_needed(9 * most, 9 * most, 0, most, GiB));
    EXPECT(!keep_was_needed(9 * most, 9 * most, 0, most + 1, GiB));
    EXPECT_EQUAL(keep_learned(MiB, MiB, 10 * MiB), 2 * MiB);
    EXPECT_EQUAL(keep_learned(9 * MiB, 2 * MiB, 10 * MiB), 10 * MiB);
}

static void looks_are_a_part_of_an_epoch_apart(void)
{
    EXPECT_EQUAL(look_step(LAW_SMALL_PART * KiB), KiB);
    EXPECT_EQUAL(look_step(LAW_SMALL_PART * (size_t)LAW_LOOK_MOST), LAW_LOOK_MOST);
    EXPECT_EQUAL(look_step(SIZE_MAX), LAW_LOOK_MOST);

    EXPECT_EQUAL(look_distance(MiB, false, GiB), MiB);
    EXPECT_EQUAL(look_distance(0, true, GiB), LAW_LOOK_MOST);
    /* A number that an option set is not passed by much. */
    EXPECT_EQUAL(look_distance(GiB, false, 0), LAW_LITTLE);
    EXPECT_EQUAL(look_distance(GiB, true, 2 * LAW_LITTLE), 2 * LAW_LITTLE);
}

static void slabs_are_looked_at_in_parts(void)
{
    EXPECT(!look_at_slab(9, LAW_SMALL_PART * 10, false));
    EXPECT(look_at_slab(10, LAW_SMALL_PART * 10, false));
    EXPECT(look_at_slab(1, 1, false));
    /* Of thin ones the blocks go back one by one. */
    EXPECT(!look_at_slab(9, LAW_CLEARLY * 10, true));
    EXPECT(look_at_slab(10, LAW_CLEARLY * 10, true));
}

/* ---- how fast it goes back ---- */

static void a_rest_is_long_and_has_few_calls(void)
{
    EXPECT(!rest_is_long(LAW_REST_MS - 1));
    EXPECT(rest_is_long(LAW_REST_MS));
    EXPECT(rest_has_few(100, 100));
    EXPECT(!rest_has_few(101, 100));
    EXPECT(rest_frees_little(100 * (size_t)LAW_PACE_MS, 100));
    EXPECT(!rest_frees_little(100 * (size_t)LAW_PACE_MS + 1, 100));
    EXPECT_EQUAL(rest_judged(0), LAW_REST_MS);
    EXPECT_EQUAL(rest_judged(LAW_REST_MS + 1), LAW_REST_MS + 1);
}

static void time_allows_so_many_bytes(void)
{
    EXPECT_EQUAL(rate_saved(0, 0, false), 0);
    EXPECT_EQUAL(rate_saved(0, 0, true), 0);
    EXPECT_EQUAL(rate_saved(MiB, 1, false), MiB + LAW_PACE_MS);
    EXPECT_EQUAL(rate_saved(MiB, 1, true), MiB + LAW_LITTLE);
    EXPECT_EQUAL(rate_saved(0, SIZE_MAX, false), SIZE_MAX); /* and does not overflow */
    EXPECT_EQUAL(rate_saved(SIZE_MAX, 1, true), SIZE_MAX);
    EXPECT_EQUAL(rate_saved(SIZE_MAX - 1, 1, true), SIZE_MAX);
    for (unsigned i = 0; i < 10000; i++) {
        size_t saved = i % 3 == 0 ? SIZE_MAX - next_random() % GiB : next_random() % GiB;
        size_t passed = next_random() % 100000;
        size_t then = rate_saved(saved, passed, i % 2 == 0);
        EXPECT(then >= saved);
        EXPECT(then <= rate_saved(saved, passed + 1, i % 2 == 0));
    }
    const size_t looks = LAW_IN_A_ROW * (size_t)LAW_LOOK_MOST;
    EXPECT(!rate_doubts_clock(looks));
    EXPECT(rate_doubts_clock(looks + 1));
}

/* ---- stacks closed to frees ---- */

static void stacks_close_where_much_lies_idle(void)
{
    EXPECT_EQUAL(idleness_unseen(0), LAW_LITTLE);
    EXPECT_EQUAL(idleness_unseen(LAW_SMALL_PART * MiB), LAW_LITTLE + MiB);
    const size_t unseen = 10 * MiB;
    EXPECT(!idleness_closes(unseen, 0, unseen, false));
    EXPECT(idleness_closes(unseen + 1, 0, unseen, false));
    const size_t live = 100 * MiB, most = LAW_CLEARLY * live;
    EXPECT(!idleness_closes(most, live, unseen, false));
    EXPECT(idleness_closes(most + 1, live, unseen, false));
    EXPECT(idleness_closes(unseen + 1, live, unseen, true)); /* huge blocks do not wait for it */
}

/* Less opens them than closes them, whatever was in use. */
static void closed_stacks_open_below_what_closes_them(void)
{
    EXPECT(!idleness_keeps_closed(LAW_LITTLE, 0));
    EXPECT(idleness_keeps_closed(LAW_LITTLE + 1, 0));
    EXPECT(!idleness_keeps_closed(LAW_LITTLE + MiB, LAW_KEEP_PART * MiB));
    EXPECT(idleness_keeps_closed(LAW_LITTLE + MiB + 1, LAW_KEEP_PART * MiB));
    for (size_t most = 0; most < 64 * GiB; most += GiB + 12345)
        EXPECT(idleness_keeps_closed(idleness_unseen(most) + 1, most));
}

static void what_comes_again_and_again_is_known(void)
{
    const size_t unseen = MiB;
    struct idleness i = {0};
    idleness_follow(&i, 40 * MiB, unseen);
    EXPECT_EQUAL(i.ebb, 40 * MiB);
    idleness_follow(&i, 40 * MiB / LAW_CLEARLY, unseen); /* not yet below it */
    EXPECT(!i.falls);
    EXPECT_EQUAL(i.returns, 0);
    idleness_follow(&i, 40 * MiB / LAW_CLEARLY - 1, unseen);
    EXPECT(i.falls);
    EXPECT_EQUAL(i.returns, 40 * MiB);
    idleness_follow(&i, 0, unseen);
    EXPECT_EQUAL(i.ebb, 0);
    idleness_follow(&i, unseen, unseen); /* as little as that does not rise */
    EXPECT(i.falls && i.ebb == 0);
    idleness_follow(&i, unseen + 1, unseen);
    EXPECT(!i.falls);
    EXPECT_EQUAL(i.ebb, unseen + 1);

    const size_t near_all = 40 * MiB - 40 * MiB / LAW_SMALL_PART;
    EXPECT(idleness_comes_back(&i, near_all));
    EXPECT(!idleness_comes_back(&i, near_all + 1));
    i.in_vain = 1;
    idleness_returned(&i, 30 * MiB);
    EXPECT_EQUAL(i.returns, 10 * MiB);
    EXPECT_EQUAL(i.ebb, 0);
    EXPECT_EQUAL(i.in_vain, 0);

    /* Little that comes and goes is not followed. */
    i = (struct idleness){.ebb = unseen};
    idleness_follow(&i, 0, unseen);
    EXPECT(!i.falls && i.ebb == unseen);
}

static void looks_in_vain_are_given_up(void)
{
    struct idleness i = {0};
    for (unsigned looks = 0; looks < LAW_IN_A_ROW; looks++) {
        EXPECT(!idleness_in_vain(&i));
        idleness_looked(&i);
    }
    EXPECT(idleness_in_vain(&i));
    idleness_looked(&i);
    EXPECT(idleness_in_vain(&i)); /* until something went back */
    idleness_returned(&i, 1);
    EXPECT(!idleness_in_vain(&i));
}

/* ---- huge pages ---- */

static void superslabs_start_huge_in_a_heap_of_small_blocks(void)
{
    EXPECT(!huge_starts_from(LAW_HUGE_START_FROM - 1));
    EXPECT(huge_starts_from(LAW_HUGE_START_FROM));
    EXPECT(!huge_starts_after(64 - 64 / LAW_SMALL_PART - 1, 64));
    EXPECT(huge_starts_after(64 - 64 / LAW_SMALL_PART, 64));
}

static void slow_touches_are_followed_by_longer_and_longer_pauses(void)
{
    EXPECT(!huge_touch_is_slow(LAW_HUGE_SLOW_NS - 1));
    EXPECT(huge_touch_is_slow(LAW_HUGE_SLOW_NS));
    size_t skip = LAW_HUGE_SKIP_LEAST;
    EXPECT_EQUAL(huge_skip_next(skip, false), LAW_HUGE_SKIP_LEAST);
    for (unsigned i = 0; i < 100; i++) {
        size_t next = huge_skip_next(skip, true);
        EXPECT(next > skip || skip > SIZE_MAX / LAW_CLEARLY);
        skip = next;
    }
    for (unsigned i = 0; i < 100; i++)
        skip = huge_skip_next(skip, false);
    EXPECT_EQUAL(skip, LAW_HUGE_SKIP_LEAST);
}

int main(void)
{
    blocks_pass_between_threads_only();
    a_drain_is_more_than_the_stacks_could_use();
    a_batch_is_half_and_after_a_turn_few();
    a_block_weighs_its_bytes_up_to_a_bound();
    threads_share_a_part_of_what_is_in_use();
    in_a_crowd_a_share_grows_with_use();
    a_new_stack_in_a_crowd_holds_little();
    who_has_given_nearly_all_back_has_little_left();
    large_blocks_are_a_part_of_the_most_in_use();
    thin_slabs_compact();
    slabs_are_thin_of_which_most_is_free();
    it_ends_when_little_is_free_or_a_small_share();
    blocks_move_where_that_fills_a_slab();
    little_is_kept_beside_use_and_more_where_it_was_needed();
    looks_are_a_part_of_an_epoch_apart();
    slabs_are_looked_at_in_parts();
    a_rest_is_long_and_has_few_calls();
    time_allows_so_many_bytes();
    stacks_close_where_much_lies_idle();
    closed_stacks_open_below_what_closes_them();
    what_comes_again_and_again_is_known();
    looks_in_vain_are_given_up();
    superslabs_start_huge_in_a_heap_of_small_blocks();
    slow_touches_are_followed_by_longer_and_longer_pauses();
    puts("23 passed, 0 failed");
    return 0;
}

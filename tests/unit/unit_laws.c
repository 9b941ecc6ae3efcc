/* What decides by the numbers of learn/laws.def, at the edges of each. Nothing here repeats a
 * number of the table, so every test holds for other values that make sense, too. */
#include "unit.h"

#include "heap/classes.h"
#include "learn/bring_in.h"
#include "learn/capacity.h"
#include "learn/compaction.h"
#include "learn/keep.h"
#include "learn/returns.h"
#include "learn/share.h"

/* ---- stacks ---- */

static void a_drain_is_more_than_the_stacks_could_use(void)
{
    EXPECT(!capacity_drains(0, 0));
    EXPECT(!capacity_drains(2 * MiB, MiB));
    EXPECT(capacity_drains(2 * MiB + 1, MiB));
}

static void a_batch_is_half_and_not_too_many(void)
{
    EXPECT_EQUAL(capacity_batch(0, false), 0);
    EXPECT_EQUAL(capacity_batch(1, false), 1);
    EXPECT_EQUAL(capacity_batch(2, false), 1);
    EXPECT_EQUAL(capacity_batch(2 * LAW_BATCH_MOST, false), LAW_BATCH_MOST);
    EXPECT_EQUAL(capacity_batch(2 * LAW_BATCH_MOST + 1, false), LAW_BATCH_MOST);
    EXPECT_EQUAL(capacity_batch(0, true), 0);
    EXPECT_EQUAL(capacity_batch(9, true), 9);
    EXPECT_EQUAL(capacity_batch(LAW_BATCH_MOST + 1, true), LAW_BATCH_MOST);
}

static void a_block_weighs_its_bytes_up_to_a_bound(void)
{
    EXPECT_EQUAL(capacity_weight(16), 16);
    EXPECT_EQUAL(capacity_weight(2 * LAW_SHARE_REFILL), 2 * LAW_SHARE_REFILL);
    EXPECT_EQUAL(capacity_weight(2 * LAW_SHARE_REFILL + 1), 2 * LAW_SHARE_REFILL);
}

/* ---- a thread's share ---- */

static size_t weight_of(size_t awake, size_t refills, size_t used)
{
    return share_at_work(awake, refills, used, SIZE_MAX, MiB).weight;
}

static void threads_share_a_part_of_what_is_in_use(void)
{
    EXPECT_EQUAL(share_alone(MiB).bytes, MiB);
    EXPECT_EQUAL(share_alone(MiB).weight, SIZE_MAX);
    EXPECT_EQUAL(share_at_work(2, 0, 0, SIZE_MAX, MiB).bytes, MiB);
    const size_t least = LAW_TINY_PART * (size_t)LAW_SHARE_LEAST;
    EXPECT_EQUAL(weight_of(2, 0, 0), least / 2);
    const size_t used = 16 * LAW_SMALL_PART * least;
    EXPECT_EQUAL(weight_of(2, 0, used), 8 * least);
    /* At most so much as may be kept of all, but the least. */
    EXPECT_EQUAL(share_at_work(2, 0, used, 4 * least, MiB).weight, 2 * least);
    EXPECT_EQUAL(share_at_work(2, 0, used, 0, MiB).weight, least / 2);
    /* Never more with more threads, and never less with more in use. */
    for (size_t awake = 2; awake < 200; awake++) {
        EXPECT(weight_of(awake + 1, 0, used) <= weight_of(awake, 0, used));
        EXPECT(weight_of(awake, 0, used) <= weight_of(awake, 0, 2 * used));
    }
}

/* Where little is in use. */
static void of_many_threads_each_begins_with_less(void)
{
    const size_t together = LAW_TINY_PART * (size_t)LAW_SHARE_LEAST;
    const size_t many = together / LAW_SHARE_FIRST; /* so that each has that */
    EXPECT_EQUAL(weight_of(LAW_TINY_PART, 0, 0), LAW_SHARE_LEAST);
    EXPECT_EQUAL(weight_of(LAW_TINY_PART + 1, 0, 0), together / (LAW_TINY_PART + 1));
    EXPECT(weight_of(many - 1, 0, 0) > LAW_SHARE_FIRST);
    EXPECT_EQUAL(weight_of(many, 0, 0), LAW_SHARE_FIRST);
    EXPECT_EQUAL(weight_of(1000 * many, 0, 0), LAW_SHARE_FIRST);
}

static void a_share_grows_with_use_up_to_the_least(void)
{
    const size_t many = 1000000;
    const size_t most = (LAW_SHARE_LEAST - LAW_SHARE_FIRST) / LAW_SHARE_REFILL;
    EXPECT_EQUAL(weight_of(many, 1, 0), LAW_SHARE_FIRST + LAW_SHARE_REFILL);
    EXPECT(weight_of(many, most - 1, 0) < LAW_SHARE_LEAST);
    EXPECT_EQUAL(weight_of(many, most, 0), LAW_SHARE_LEAST);
    EXPECT_EQUAL(weight_of(many, 1000 * most, 0), LAW_SHARE_LEAST);
    /* What it has of what is in use does not. */
    EXPECT_EQUAL(weight_of(2, 1000 * most, 0), weight_of(2, 0, 0));
}

static void a_new_stack_holds_a_part_of_the_share(void)
{
    const size_t bytes = 512, weight = LAW_FREES_A_LOOK * bytes;
    EXPECT_EQUAL(share_first(bytes / 2, 15, weight), 2);
    EXPECT_EQUAL(share_first(bytes / 2, 15, weight - 1), 1);
    EXPECT_EQUAL(share_first(16, 3, weight), 3); /* of a large share the class's number */
    EXPECT_EQUAL(share_first(16, 3, SIZE_MAX), 3);
    EXPECT_EQUAL(share_first(32 * KiB, 3, LAW_SHARE_LEAST), 3);
    EXPECT_EQUAL(share_first(32 * KiB, 3, LAW_SHARE_LEAST - 1), 0);
    EXPECT_EQUAL(share_first(2 * bytes, 15, weight), 1);
    EXPECT_EQUAL(share_first((2 * bytes) + 1, 15, weight), 0);
    EXPECT_EQUAL(share_first(16, 15, 0), 0);
}

static void large_blocks_are_a_part_of_the_most_in_use(void)
{
    const size_t largest = 2 * MiB;
    EXPECT_EQUAL(share_of_large(1, 0, largest, GiB), largest);
    EXPECT_EQUAL(share_of_large(1, 2 * 10 * MiB, largest, GiB), 10 * MiB);
    EXPECT_EQUAL(share_of_large(1, GiB, largest, MiB), 2 * MiB);
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
    const size_t page = 4 * KiB, much = 2 * (size_t)LAW_LITTLE;
    for (size_t size = 16; size <= page / 2; size *= 2) {
        size_t free = much / size;
        EXPECT(!compaction_begins(free, free, size, page));
        EXPECT(compaction_begins(free + 1, free + 1, size, page));
        EXPECT(compaction_begins(free + 1, 2 * free, size, page));
        EXPECT(!compaction_begins(free + 1, 2 * (free + 1), size, page));
    }
    EXPECT(!compaction_begins(GiB, GiB, page / 2 + 16, page)); /* a page of its own */
}

static void slabs_are_thin_of_which_most_is_free(void)
{
    EXPECT(!compaction_thin(0, 100));
    EXPECT(!compaction_thin(100 / 2, 100));
    EXPECT(compaction_thin(100 / 2 + 1, 100));
}

static void it_ends_when_little_is_free_or_a_small_share(void)
{
    const size_t size = 256, little = LAW_LITTLE / size;
    EXPECT(compaction_ends(little, little, size));
    EXPECT(!compaction_ends(little + 1, little + 1, size));
    size_t blocks = 100 * little;
    EXPECT(compaction_ends(blocks / 2 / 2, blocks, size));
    EXPECT(!compaction_ends(blocks / 2 / 2 + 1, blocks, size));
    /* What has just begun does not end. */
    for (size_t free = 1; free < blocks; free++)
        EXPECT(!compaction_begins(free, blocks, size, 4 * KiB) ||
               !compaction_ends(free, blocks, size));
}

static void blocks_move_where_that_fills_a_slab(void)
{
    const size_t blocks = 100;
    /* What is free elsewhere must hold a slab's worth. */
    EXPECT(!compaction_moves(blocks / 2, blocks, blocks, 3 * blocks));
    EXPECT(compaction_moves(blocks / 2, blocks, blocks + 1, 3 * blocks));
    /* A full slab stays, and one that is clearly fuller than all ten together. */
    EXPECT(!compaction_moves(0, blocks, 5 * blocks, 10 * blocks));
    for (size_t free = 1; free <= blocks / 2; free++) {
        size_t all_free = 10 * 2 * free;
        EXPECT(compaction_moves(free, blocks, all_free, 10 * blocks) == (all_free > blocks));
        EXPECT(!compaction_moves(free, blocks, all_free + 1, 10 * blocks));
    }
    /* Half of the class is free: slabs of which a quarter is free, or more, are left. */
    EXPECT(compaction_moves(blocks / 2 / 2, blocks, 50 * blocks, 100 * blocks));
    EXPECT(!compaction_moves(blocks / 2 / 2 - 1, blocks, 50 * blocks, 100 * blocks));
}

/* ---- how much is kept, and for how long ---- */

static void little_is_kept_beside_use_and_more_where_it_was_needed(void)
{
    EXPECT_EQUAL(keep_limit(0, 0), LAW_LITTLE);
    EXPECT_EQUAL(keep_limit(GiB, 0), GiB + GiB / LAW_TINY_PART);
    EXPECT_EQUAL(keep_limit(0, 3 * MiB), 3 * MiB);
    EXPECT_EQUAL(keep_limit(0, GiB), LAW_SMALL_PART * (size_t)LAW_LITTLE);
    EXPECT_EQUAL(keep_limit(GiB, GiB), GiB + GiB / LAW_TINY_PART);
    for (size_t most = 0; most < GiB; most += 3 * MiB)
        EXPECT(keep_limit(most, 0) < keep_limit(most + 1, 0));
}

static void places_to_choose_from_take_a_small_part_of_limited_addresses(void)
{
    EXPECT(keep_apart(SIZE_MAX, 1024 * GiB));
    EXPECT(keep_apart(LAW_SMALL_PART * MiB, MiB));
    EXPECT(!keep_apart(LAW_SMALL_PART * MiB, MiB + 1));
    EXPECT(!keep_apart(LAW_SMALL_PART * MiB - 1, MiB));
}

static void slabs_are_looked_at_in_parts(void)
{
    EXPECT(!look_at_slab(9, LAW_SMALL_PART * 10, false));
    EXPECT(look_at_slab(10, LAW_SMALL_PART * 10, false));
    EXPECT(look_at_slab(1, 1, false));
    /* Of thin ones the blocks go back one by one. */
    EXPECT(!look_at_slab(9, 2 * 10, true));
    EXPECT(look_at_slab(10, 2 * 10, true));
}

/* ---- when it goes back ---- */

static void much_that_is_idle_goes_back(void)
{
    EXPECT_EQUAL(returns_from(0), RETURNS_LEAST);
    EXPECT_EQUAL(returns_from(LAW_IDLE_PART * RETURNS_LEAST), RETURNS_LEAST);
    EXPECT_EQUAL(returns_from(LAW_IDLE_PART * GiB), GiB);
}

static void the_more_went_back_in_vain_the_less_has_to_be_left(void)
{
    EXPECT_EQUAL(returns_below(0, 0), SIZE_MAX);
    EXPECT_EQUAL(returns_below(GiB / 2, GiB), SIZE_MAX);
    EXPECT_EQUAL(returns_below(GiB / 2 + 1, GiB), GiB / 2);
    EXPECT_EQUAL(returns_below(GiB, GiB), GiB / 2);
    EXPECT_EQUAL(returns_below(GiB + 1, GiB), GiB / 2 / LAW_IDLE_PART);
    EXPECT_EQUAL(returns_below(2 * GiB + GiB / 2, GiB), GiB / 2 / LAW_IDLE_PART);
    EXPECT_EQUAL(returns_below(2 * GiB + GiB / 2 + 1, GiB), 0);
}

static void work_pays_what_went_back_in_vain(void)
{
    const size_t rest = LAW_TINY_PART * LAW_IDLE_PART;
    EXPECT_EQUAL(returns_paid(0, 0, 0), 0);
    EXPECT_EQUAL(returns_paid(GiB, 0, 0), GiB);
    EXPECT_EQUAL(returns_paid(GiB, 1, 0), GiB - LAW_WORK_MS);
    EXPECT_EQUAL(returns_paid(GiB, 0, rest - 1), GiB);
    EXPECT_EQUAL(returns_paid(GiB, 1, rest), GiB - 2 * (size_t)LAW_WORK_MS);
    EXPECT_EQUAL(returns_paid(GiB, SIZE_MAX, 0), 0); /* and does not overflow */
    EXPECT_EQUAL(returns_paid(GiB, 0, SIZE_MAX), 0);
    EXPECT_EQUAL(returns_paid(LAW_WORK_MS - 1, 0, 0), LAW_WORK_MS - 1);
    for (size_t worked = 0; worked < 1000; worked++)
        EXPECT(returns_paid(GiB, worked + 1, 0) < returns_paid(GiB, worked, 0));
}

static void a_debt_ends(void)
{
    EXPECT_EQUAL(returns_debt(MiB, GiB), MiB);
    EXPECT_EQUAL(returns_debt(100 * GiB, GiB), 3 * GiB);
    EXPECT(returns_paid(returns_debt(SIZE_MAX, GiB), GiB / LAW_WORK_MS, 0) <= 2 * GiB + GiB / 2);
}

static void looks_come_more_often_than_memory_goes_back(void)
{
    EXPECT_EQUAL(returns_look(0), LAW_LITTLE);
    EXPECT_EQUAL(returns_look(GiB), GiB / LAW_TINY_PART);
    for (size_t live = 0; live < GiB; live += MiB)
        EXPECT(2 * returns_look(live) <= returns_from(live));
    EXPECT(returns_low(GiB / 2 - 1, GiB));
    EXPECT(!returns_low(GiB / 2, GiB));
    EXPECT(!returns_low(0, LAW_SMALL_PART * (size_t)LAW_LITTLE - 1));
}

static void a_thread_ebbs_that_has_given_nearly_all_back(void)
{
    const size_t most = LAW_SMALL_PART * (size_t)LAW_SHARE_FIRST;
    EXPECT(!returns_ebbs(0, LAW_SHARE_FIRST - 1));
    EXPECT(returns_ebbs(0, LAW_SHARE_FIRST));
    EXPECT(returns_ebbs(-1, LAW_SHARE_FIRST)); /* others' blocks with its own */
    EXPECT(returns_ebbs(LAW_SHARE_FIRST, most));
    EXPECT(!returns_ebbs(LAW_SHARE_FIRST + 1, most));
}

/* ---- huge pages ---- */

static void superslabs_start_huge_in_a_heap_of_small_blocks(void)
{
    EXPECT(!slab_comes_whole(LAW_TINY_PART - 1));
    EXPECT(slab_comes_whole(LAW_TINY_PART));
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
        EXPECT(next > skip || skip > SIZE_MAX / 2);
        skip = next;
    }
    for (unsigned i = 0; i < 100; i++)
        skip = huge_skip_next(skip, false);
    EXPECT_EQUAL(skip, LAW_HUGE_SKIP_LEAST);
}

int main(void)
{
    a_drain_is_more_than_the_stacks_could_use();
    a_batch_is_half_and_not_too_many();
    a_block_weighs_its_bytes_up_to_a_bound();
    threads_share_a_part_of_what_is_in_use();
    of_many_threads_each_begins_with_less();
    a_share_grows_with_use_up_to_the_least();
    a_new_stack_holds_a_part_of_the_share();
    large_blocks_are_a_part_of_the_most_in_use();
    thin_slabs_compact();
    slabs_are_thin_of_which_most_is_free();
    it_ends_when_little_is_free_or_a_small_share();
    blocks_move_where_that_fills_a_slab();
    little_is_kept_beside_use_and_more_where_it_was_needed();
    places_to_choose_from_take_a_small_part_of_limited_addresses();
    slabs_are_looked_at_in_parts();
    much_that_is_idle_goes_back();
    the_more_went_back_in_vain_the_less_has_to_be_left();
    work_pays_what_went_back_in_vain();
    a_debt_ends();
    looks_come_more_often_than_memory_goes_back();
    a_thread_ebbs_that_has_given_nearly_all_back();
    superslabs_start_huge_in_a_heap_of_small_blocks();
    slow_touches_are_followed_by_longer_and_longer_pauses();
    puts("23 passed, 0 failed");
    return 0;
}

/* hakmem_defrag_hint, _malloc and _free: a program that moves its blocks compacts its heap. */
#include "check.h"
#include "stats.h"

static unsigned random_number(unsigned *state)
{
    *state = *state * 1103515245 + 12345;
    return *state >> 16;
}

/* As a program does that found a block worth moving. */
static void *move(void *p, size_t n)
{
    void *q = NEED("hakmem_defrag_malloc", hakmem_defrag_malloc(n));
    memcpy(q, p, n);
    hakmem_defrag_free(p);
    return q;
}

/* ---- one thread ---- */

enum { COUNT = 100000, KEPT_OF = 5, PASSES = 4 };

/* Of blocks of n bytes one in KEPT_OF stays, at random; the others in `blocks` are null. */
static void thin_out(void **blocks, size_t n, unsigned *seed)
{
    for (unsigned i = 0; i < COUNT; i++) {
        blocks[i] = NEED("malloc", do_malloc(n));
        pattern_fill(blocks[i], n, i);
    }
    for (unsigned i = 0; i < COUNT; i++)
        if (random_number(seed) % KEPT_OF != 0) {
            do_free(blocks[i]);
            blocks[i] = NULL;
        }
}

TEST(moved_blocks_lie_together)
{
    static void *blocks[COUNT];
    static const size_t sizes[] = {24, 200, 1000};
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        size_t n = sizes[k];
        unsigned seed = 1;
        thin_out(blocks, n, &seed);
        size_t thin = stats_now().slabs;
        size_t moved = 0, hinted = 0, live = 0;
        for (unsigned pass = 0; pass < PASSES; pass++) {
            hinted = live = 0;
            for (unsigned i = 0; i < COUNT; i++) {
                if (blocks[i] == NULL)
                    continue;
                live++;
                if (!hakmem_defrag_hint(blocks[i]))
                    continue;
                hinted++;
                blocks[i] = move(blocks[i], n);
            }
            moved += hinted;
        }
        size_t gone = thin - stats_now().slabs;
        size_t possible = (COUNT - live) * hakmem_good_size(n) / 65536;
        CHECK(moved > live / 2, "moved of %zu: expected more than half, found %zu", live, moved);
        CHECK(moved < 2 * live, "moved of %zu: expected less than all twice, found %zu", live,
              moved);
        CHECK(hinted <= live / 100, "of %zu worth moving at last: expected 1%%, found %zu", live,
              hinted);
        CHECK(gone + gone / 8 + 4 >= possible,
              "slabs of blocks of %zu that became empty: expected about %zu, found %zu", n,
              possible, gone);
        for (unsigned i = 0; i < COUNT; i++) {
            if (blocks[i] != NULL)
                CHECK_PATTERN(blocks[i], n, i);
            do_free(blocks[i]);
        }
    }
    CHECK_SIZE("hakmem_check", (size_t)hakmem_check(), 0);
}

/* What moved blocks leave goes back like what is freed otherwise. */
TEST(empty_pages_go_back)
{
    enum { SIZE = 300 };
    static void *blocks[COUNT];
    unsigned seed = 2;
    thin_out(blocks, SIZE, &seed);
    struct hakmem_stats thin = stats_now();
    size_t gain = hakmem_defrag_gain();
    CHECK(gain > 10 * MiB && gain <= thin.free_in_slabs, "gain: expected 10 to %zu, found %zu",
          thin.free_in_slabs, gain);
    for (unsigned pass = 0; pass < PASSES; pass++)
        for (unsigned i = 0; i < COUNT; i++)
            if (blocks[i] != NULL && hakmem_defrag_hint(blocks[i]))
                blocks[i] = move(blocks[i], SIZE);
    gain = hakmem_defrag_gain();
    CHECK(gain <= MiB, "gain of a heap that is compact: expected little, found %zu", gain);
    hakmem_purge(); /* slabs get what lay in stacks, which may be a slab more to gain */
    gain = hakmem_defrag_gain();
    CHECK(gain <= MiB, "gain after purge: expected little, found %zu", gain);
    struct hakmem_stats after = stats_now();
    size_t held = after.free_in_slabs - after.returned_in_slabs + after.thread_caches;
    CHECK(held <= after.program / 4 + MiB, "free in resident slabs: expected up to %zu, found %zu",
          after.program / 4 + MiB, held);
    CHECK(after.returned > thin.returned + 10 * MiB, "returned: expected 10 MiB, found %zu",
          after.returned - thin.returned);
    for (unsigned i = 0; i < COUNT; i++)
        do_free(blocks[i]);
}

/* 1 only of a block with pages that others share, and room below. */
TEST(no_other_block_is_worth_moving)
{
    CHECK_SIZE("hint of null", (size_t)hakmem_defrag_hint(NULL), 0);
    static const size_t sizes[] = {32769, 65536, 100000, 262144, 262145, 2000000, 3000000};
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++)
        for (size_t align = 16; align <= 4 * MiB; align *= 64) {
            void *p = NEED("aligned_alloc", do_aligned_alloc(align, sizes[k]));
            CHECK_SIZE("hint of a large block", (size_t)hakmem_defrag_hint(p), 0);
            do_free(p);
        }
    /* In order and without holes. */
    static void *blocks[1000];
    size_t hinted = 0;
    for (unsigned i = 0; i < 1000; i++)
        blocks[i] = NEED("malloc", do_malloc(11000));
    for (unsigned i = 0; i < 1000; i++) {
        hinted += (size_t)hakmem_defrag_hint(blocks[i]);
        do_free(blocks[i]);
    }
    CHECK(hinted <= 10, "worth moving in a dense heap: expected few, found %zu", hinted);
}

/* A block is a block, whichever function it is from. */
TEST(functions_mix)
{
    for (size_t n = 0; n < 5 * MiB; n += n < 3000 ? 1 : n / 7) {
        unsigned char *p = NEED("hakmem_defrag_malloc", hakmem_defrag_malloc(n));
        CHECK_ALIGNED(p, 16);
        CHECK_SIZE("usable size", do_usable_size(p), hakmem_good_size(n));
        pattern_fill(p, n, 1);
        int hint = hakmem_defrag_hint(p);
        CHECK(hint == 0 || hint == 1, "hint: expected 0 or 1, found %d", hint);
        unsigned char *more = NEED("realloc", do_realloc(p, n + n / 2 + 1));
        CHECK_PATTERN(more, n, 1);
        hakmem_defrag_free(more);
        do_free(NEED("hakmem_defrag_malloc", hakmem_defrag_malloc(n)));
        hakmem_defrag_free(NEED("calloc", do_calloc(1, n)));
        hakmem_defrag_free(NEED("aligned_alloc", do_aligned_alloc(128, n)));
        unsigned char *zeroed = NEED("calloc", do_calloc(1, n));
        CHECK_BYTES(zeroed, 0, n);
        do_free(zeroed);
    }
    hakmem_defrag_free(NULL);
    CHECK_SIZE("hakmem_check", (size_t)hakmem_check(), 0);
}

TEST(errno_and_no_memory)
{
    errno = 77;
    void *p = NEED("hakmem_defrag_malloc", hakmem_defrag_malloc(100));
    hakmem_defrag_hint(p);
    hakmem_defrag_free(p);
    CHECK_ERROR("errno after success", errno, 77);
    volatile size_t too_much = SIZE_MAX;
    CHECK_NULL("hakmem_defrag_malloc(SIZE_MAX)", hakmem_defrag_malloc(too_much));
    CHECK_ERROR("its errno", errno, ENOMEM);
}

/* Another thread's, which it took from its own part of the heap. */
static void *thin_out_there(void *blocks)
{
    unsigned seed = 3;
    thin_out(blocks, 200, &seed);
    return NULL;
}

TEST(another_threads_blocks_move)
{
    static void *blocks[COUNT];
    in_thread(thin_out_there, blocks);
    size_t before = hakmem_defrag_gain();
    CHECK(before > 8 * MiB, "gain: expected 8 MiB, found %zu", before);
    for (unsigned pass = 0; pass < PASSES; pass++)
        for (unsigned i = 0; i < COUNT; i++)
            if (blocks[i] != NULL && hakmem_defrag_hint(blocks[i]))
                blocks[i] = move(blocks[i], 200);
    size_t after = hakmem_defrag_gain();
    CHECK(after <= MiB, "gain of what is compact: expected little, found %zu", after);
    for (unsigned i = 0; i < COUNT; i++) {
        if (blocks[i] != NULL)
            CHECK_PATTERN(blocks[i], 200, i);
        do_free(blocks[i]);
    }
}

/* ---- threads: each moves what all have, and frees what others took ---- */

enum { THREADS = 4, SHARED = 4096, TURNS = 60000 };

static struct {
    pthread_mutex_t lock;
    void *block;
    size_t size;
    unsigned number;
} shared[SHARED];

static void *turns(void *argument)
{
    unsigned seed = (unsigned)(size_t)argument;
    for (unsigned i = 0; i < TURNS; i++) {
        unsigned k = random_number(&seed) % SHARED;
        pthread_mutex_lock(&shared[k].lock);
        void *p = shared[k].block;
        size_t n = shared[k].size;
        if (p == NULL) {
            n = 16 + random_number(&seed) % (i % 16 == 0 ? 40000 : 600);
            p = NEED("malloc", i % 2 ? do_malloc(n) : hakmem_defrag_malloc(n));
            shared[k].size = n;
            shared[k].number = i;
            pattern_fill(p, n, i);
        } else if (hakmem_defrag_hint(p)) {
            p = move(p, n);
        } else if (random_number(&seed) % 4 != 0) {
            CHECK_PATTERN(p, n, shared[k].number);
            if (i % 3 == 0)
                hakmem_defrag_free(p);
            else
                do_free(p);
            p = NULL;
        }
        shared[k].block = p;
        pthread_mutex_unlock(&shared[k].lock);
    }
    return NULL;
}

TEST(threads_move_each_others)
{
    for (unsigned i = 0; i < SHARED; i++)
        pthread_mutex_init(&shared[i].lock, NULL);
    in_threads(THREADS, turns);
    for (unsigned i = 0; i < SHARED; i++) {
        if (shared[i].block != NULL)
            CHECK_PATTERN(shared[i].block, shared[i].size, shared[i].number);
        hakmem_defrag_free(shared[i].block);
        shared[i].block = NULL;
    }
    CHECK_SIZE("hakmem_check", (size_t)hakmem_check(), 0);
}

/* ---- children ---- */

static void hint(void *p) { hakmem_defrag_hint(p); }

static void free_twice(void *p)
{
    hakmem_defrag_free(p);
    hakmem_defrag_free(p);
}

static void free_twice_by_both(void *p)
{
    do_free(p);
    hakmem_defrag_free(p);
}

TEST(wrong_pointers_are_reported)
{
    static char of_the_program[64];
    char *p = do_malloc(1000), *freed = do_malloc(1000);
    do_free(freed);
    CHECK_ABORTS(hint, p + 16, "hakmem_defrag_hint(");
    CHECK_ABORTS(hint, freed, "hakmem_defrag_hint(");
    CHECK_ABORTS(hakmem_defrag_free, p + 16, "free(");
    CHECK_ABORTS(hakmem_defrag_free, of_the_program, "free(");
    CHECK_ABORTS(free_twice, hakmem_defrag_malloc(1000), "free(");
    CHECK_ABORTS(free_twice, hakmem_defrag_malloc(100000), "free(");
    CHECK_ABORTS(free_twice_by_both, p, "free(");
}

/* A child compacts what it got from its parent. */
TEST_IN_CHILD(a_child_moves) { moved_blocks_lie_together(); }

int main(void) { return tests_main("defrag"); }

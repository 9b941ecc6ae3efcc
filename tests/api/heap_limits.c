/* The options soft_limit_bytes and hard_limit_bytes, set while the program runs, and
 * hakmem_on_soft_limit. */
#include "check.h"
#include "stats.h"

static size_t held(void) { return stats_now().held; }

static void set(const char *name, size_t bytes)
{
    CHECK_ERROR(name, hakmem_option_set(name, bytes), 0);
}

/* Blocks in a list through themselves, until there is no memory; how many. */
struct block {
    struct block *next;
};

static size_t fill(struct block **list, size_t n, size_t most)
{
    size_t count = 0;
    for (; count < most; count++) {
        errno = 0;
        struct block *block = do_malloc(n);
        if (block == NULL) {
            CHECK_ERROR("at the limit", errno, ENOMEM);
            break;
        }
        memset(block, 7, n);
        block->next = *list;
        *list = block;
    }
    return count;
}

static void empty(struct block **list)
{
    while (*list != NULL) {
        struct block *block = *list;
        *list = block->next;
        do_free(block);
    }
}

static void heap_is_sound(void) { CHECK_SIZE("breaches", (size_t)hakmem_check(), 0); }

#define ROOM (48 * MiB)

TEST(a_hard_limit_is_not_passed)
{
    static const size_t sizes[] = {48, 3000, 30000, 100000, 700000, 3 * MiB, 5 * MiB};
    hakmem_purge();
    size_t limit = held() + ROOM;
    set("hard_limit_bytes", limit);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct block *list = NULL;
        size_t got = fill(&list, sizes[i], ROOM) * sizes[i];
        CHECK(got >= ROOM / 2 && got <= ROOM,
              "bytes in blocks of %zu: expected most of %zu, found %zu", sizes[i], ROOM, got);
        CHECK(held() <= limit, "held: expected at most %zu, found %zu", limit, held());
        heap_is_sound();
        empty(&list);
        CHECK(held() <= limit, "held: expected at most %zu, found %zu", limit, held());
    }
    heap_is_sound();
    set("hard_limit_bytes", 0);
    do_free(NEED("a block above the former limit", do_malloc(2 * ROOM)));
}

TEST(what_is_kept_goes_back_for_other_sizes)
{
    hakmem_purge();
    set("hard_limit_bytes", held() + ROOM);
    void *huge = NEED("a huge block", do_malloc(ROOM * 3 / 4));
    CHECK_NULL("no room for another", do_malloc(ROOM / 2));
    do_free(huge);
    struct block *list = NULL;
    size_t count = fill(&list, 1000, ROOM * 3 / 4 / 1024);
    CHECK_SIZE("small blocks where the huge one was", count, ROOM * 3 / 4 / 1024);
    empty(&list);
    set("hard_limit_bytes", 0);
}

TEST(realloc_leaves_the_block)
{
    hakmem_purge();
    set("hard_limit_bytes", held() + ROOM);
    char *block = NEED("a block", do_malloc(ROOM / 4));
    pattern_fill(block, ROOM / 4, 5);
    CHECK_NULL("no room", do_realloc(block, ROOM * 2));
    CHECK_ERROR("no room", errno, ENOMEM);
    CHECK_PATTERN(block, ROOM / 4, 5);
    block = NEED("a little larger", do_realloc(block, ROOM / 2));
    CHECK_PATTERN(block, ROOM / 4, 5);
    block = NEED("smaller", do_realloc(block, ROOM / 8));
    CHECK_PATTERN(block, ROOM / 8, 5);
    do_free(block);
    heap_is_sound();
    set("hard_limit_bytes", 0);
}

/* ---- threads ---- */

enum { THREADS = 4, ROUNDS = 6 };

static size_t failed; /* atomic */

static void *fill_and_empty(void *number)
{
    static const size_t sizes[] = {64, 5000, 200000, 3 * MiB};
    for (unsigned round = 0; round < ROUNDS; round++) {
        struct block *list = NULL;
        size_t size = sizes[((uintptr_t)number + round) % 4];
        size_t most = ROOM / 2 / size;
        if (fill(&list, size, most) < most)
            __atomic_fetch_add(&failed, 1, __ATOMIC_RELAXED);
        empty(&list);
    }
    return NULL;
}

TEST(threads_share_a_hard_limit)
{
    hakmem_purge();
    size_t limit = held() + ROOM;
    size_t most = 0;
    pthread_t threads[THREADS];
    set("hard_limit_bytes", limit);
    threads_start(threads, THREADS, fill_and_empty);
    for (unsigned look = 0; look < 100; look++) {
        size_t now = held();
        most = now > most ? now : most;
    }
    threads_join(threads, THREADS);
    CHECK(most <= limit, "held by all threads: expected at most %zu, found %zu", limit, most);
    CHECK(failed > 0, "fills that came to the limit: expected some, found %zu", failed);
    heap_is_sound();
    set("hard_limit_bytes", 0);
    do_free(NEED("a block above the former limit", do_malloc(2 * ROOM)));
}

/* ---- the soft limit ---- */

static size_t calls; /* atomic */

static void when_called(void *argument)
{
    CHECK(argument == &calls, "the argument: expected %p, found %p", (void *)&calls, argument);
    struct block *list = NULL;
    CHECK_SIZE("blocks in the callback", fill(&list, 500, 1000), 1000);
    empty(&list);
    errno = ERANGE;
    __atomic_fetch_add(&calls, 1, __ATOMIC_RELAXED);
}

TEST(the_callback_comes_once_for_each_crossing)
{
    struct block *below = NULL;
    struct block *above = NULL;
    hakmem_purge();
    size_t limit = held() + ROOM;
    set("soft_limit_bytes", limit);
    hakmem_on_soft_limit(when_called, &calls);
    fill(&below, 10000, ROOM * 3 / 4 / 12000);
    CHECK_SIZE("calls below the limit", calls, 0);
    for (unsigned crossing = 1; crossing <= 3; crossing++) {
        errno = 0;
        fill(&above, 10000, ROOM / 10000);
        CHECK_ERROR("errno after the callback", errno, 0);
        CHECK_SIZE("calls above the limit", calls, crossing);
        empty(&above);
        hakmem_purge();
        CHECK_SIZE("calls below it again", calls, crossing);
    }
    set("soft_limit_bytes", held() / 2);
    CHECK_SIZE("calls after the limit has come down", calls, 4);
    set("soft_limit_bytes", 0);
    hakmem_on_soft_limit(NULL, NULL);
    fill(&above, 3 * MiB, 40);
    CHECK_SIZE("calls without a limit", calls, 4);
    empty(&above);
    empty(&below);
    heap_is_sound();
}

TEST(what_is_kept_counts_for_nothing)
{
    hakmem_purge();
    calls = 0;
    set("soft_limit_bytes", held() + ROOM);
    hakmem_on_soft_limit(when_called, &calls);
    for (unsigned i = 0; i < 10; i++) {
        char *huge = NEED("a huge block", do_malloc(ROOM * 3 / 4));
        memset(huge, 1, ROOM * 3 / 4);
        do_free(huge);
        struct block *list = NULL;
        fill(&list, 5000, ROOM / 2 / 5000);
        empty(&list);
    }
    CHECK_SIZE("calls where giving back was enough", calls, 0);
    set("soft_limit_bytes", 0);
    hakmem_on_soft_limit(NULL, NULL);
}

TEST(under_a_limit_little_is_kept)
{
    struct block *list = NULL;
    static const size_t sizes[] = {500, 20000, 500000, 4 * MiB};
    hakmem_purge();
    size_t before = held();
    size_t limit = before + 4 * ROOM;
    set("soft_limit_bytes", limit);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        fill(&list, sizes[i], 2 * ROOM / sizes[i]);
        empty(&list);
        struct hakmem_stats now = stats_now();
        CHECK(now.retained + now.kept <= limit / 16 + 4 * MiB,
              "kept after blocks of %zu: expected at most %zu, found %zu", sizes[i],
              limit / 16 + 4 * MiB, now.retained + now.kept);
    }
    set("soft_limit_bytes", 0);
}

int main(void) { return tests_main("heap_limits"); }

/* hakmem's own functions: good sizes, statistics, purge, version, heap check. */
#include "check.h"
#include "stats.h"

#include <sched.h>

TEST(version)
{
    CHECK_SIZE("hakmem_version", hakmem_version(), HAKMEM_VERSION);
    CHECK_SIZE("HAKMEM_VERSION", HAKMEM_VERSION,
               HAKMEM_VERSION_MAJOR * 10000 + HAKMEM_VERSION_MINOR * 100 + HAKMEM_VERSION_PATCH);
}

TEST(good_size_is_what_a_block_has)
{
    for (size_t n = 0; n < 80 * MiB; n += n < 70000 ? 1 : n / 7) {
        void *p = NEED("malloc", do_malloc(n));
        if (hakmem_good_size(n) != do_usable_size(p))
            CHECK(false, "hakmem_good_size(%zu): expected %zu, found %zu", n, do_usable_size(p),
                  hakmem_good_size(n));
        do_free(p);
    }
    CHECK_SIZE("hakmem_good_size(SIZE_MAX)", hakmem_good_size(SIZE_MAX), 0);
    CHECK_SIZE("hakmem_good_size(PTRDIFF_MAX + 1)", hakmem_good_size((size_t)PTRDIFF_MAX + 1), 0);
}

static void sum_is_mapped(const struct hakmem_stats *s)
{
    CHECK_SIZE("sum of the parts",
               s->program + s->thread_caches + s->transfer + s->free_in_slabs + s->rest +
                   s->retained + s->untouched + s->kept + s->metadata + s->map,
               s->mapped);
    CHECK(s->mapped_most >= s->mapped, "mapped_most: expected at least %zu, found %zu", s->mapped,
          s->mapped_most);
}

TEST(stats_follow_blocks)
{
    static const size_t sizes[] = {1, 100, 1000, 32768, 50000, 262144, 262145, 2000000, 40000000};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        size_t n = sizes[i];
        struct hakmem_stats before = stats_now();
        void *blocks[20];
        for (int k = 0; k < 20; k++)
            blocks[k] = NEED("malloc", do_malloc(n));
        struct hakmem_stats with = stats_now();
        CHECK_SIZE("program's bytes", with.program - before.program, 20 * hakmem_good_size(n));
        sum_is_mapped(&with);
        CHECK_SIZE("large blocks", with.large_blocks - before.large_blocks,
                   n > 32768 && n <= 2 * MiB ? 20 : 0);
        CHECK_SIZE("huge blocks", with.huge_blocks - before.huge_blocks, n > 2 * MiB ? 20 : 0);
        for (int k = 0; k < 20; k++)
            do_free(blocks[k]);
        struct hakmem_stats after = stats_now();
        CHECK_SIZE("program's bytes after free", after.program, before.program);
        sum_is_mapped(&after);
    }
}

TEST(stats_by_size)
{
    _Static_assert(offsetof(struct hakmem_stats, flushes) == 19 * sizeof(size_t),
                   "the members of 0.1 stay where they are: later ones come after them");
    unsigned char room[sizeof(struct hakmem_stats) + 64];
    memset(room, 0xee, sizeof room);
    hakmem_stats((struct hakmem_stats *)room, 2 * sizeof(size_t));
    CHECK(((struct hakmem_stats *)room)->mapped != 0, "mapped: expected more than 0");
    CHECK_BYTES(room + 2 * sizeof(size_t), 0xee, sizeof room - 2 * sizeof(size_t));
    size_t known = hakmem_stats((struct hakmem_stats *)room, sizeof room);
    CHECK_SIZE("bytes known", known, sizeof(struct hakmem_stats));
    CHECK_BYTES(room + known, 0, sizeof room - known);
}

/* A thread that has given back nearly all rests, and flushes no stack. */
TEST_FIRST(counts)
{
    struct hakmem_stats before = stats_now();
    enum { N = 20000 };
    static void *blocks[N];
    for (int i = 0; i < N; i++)
        blocks[i] = NEED("malloc", do_malloc(48));
    struct hakmem_stats with = stats_now();
    CHECK(with.refills > before.refills, "refills: expected more than %zu, found %zu",
          before.refills, with.refills);
    CHECK(with.slabs >= before.slabs + N * 48 / 65536,
          "slabs: expected %d more than %zu, found %zu", N * 48 / 65536, before.slabs, with.slabs);
    for (int i = 0; i < N; i++)
        do_free(blocks[i]);
    struct hakmem_stats after = stats_now();
    CHECK(after.flushes > with.flushes, "flushes: expected more than %zu, found %zu", with.flushes,
          after.flushes);
}

TEST(purge_gives_all_back)
{
    enum { N = 6000 };
    hakmem_mallopt(-1, -1); /* M_TRIM_THRESHOLD: what is free stays until then */
    static void *blocks[N];
    for (int i = 0; i < N; i++) {
        blocks[i] = NEED("malloc", do_malloc(3000));
        memset(blocks[i], 1, 3000);
    }
    for (int i = 0; i < N; i++)
        do_free(blocks[i]);
    void *huge = NEED("malloc", do_malloc(30 * MiB));
    memset(huge, 1, 30 * MiB);
    do_free(huge);
    struct hakmem_stats before = stats_now();
    size_t bytes = hakmem_purge();
    CHECK(bytes >= 30 * MiB + N * 3000u, "hakmem_purge: expected %zu or more, found %zu",
          30 * MiB + N * 3000u, bytes);
    struct hakmem_stats after = stats_now();
    CHECK_SIZE("retained after purge", after.retained, 0);
    CHECK_SIZE("kept after purge", after.kept, 0);
    CHECK_SIZE("thread's cache after purge", after.thread_caches, 0);
    CHECK(after.returned - before.returned >= 30 * MiB + N * 2900u,
          "returned: expected %zu or more, found %zu", 30 * MiB + N * 2900u,
          after.returned - before.returned);
    CHECK(after.returning_ns > before.returning_ns, "returning_ns: expected more than %zu",
          before.returning_ns);
    CHECK_SIZE("hakmem_purge again", hakmem_purge(), 0);
    do_free(NEED("malloc", do_malloc(20 * MiB)));
    size_t again = stats_now().taken_again - after.taken_again;
    CHECK(again >= 20 * MiB && again < 21 * MiB, "taken_again: expected 20 MiB, found %zu", again);
    CHECK_SIZE("hakmem_check", (size_t)hakmem_check(), 0);
}

/* A walk while others allocate, free and hand blocks over: nothing that it may look at is broken.
 */
enum { SLOTS = 512 };
static void *slots[SLOTS];
static bool stop;

static void *busy(void *seed)
{
    uint64_t random = (uintptr_t)seed;
    while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        size_t n = random >> 61 == 0 ? (size_t)(random >> 30) % 400000 : (random >> 30) % 3000;
        void *p = NEED("malloc", do_malloc(n));
        if (n > 0)
            memset(p, 1, n < 64 ? n : 64);
        do_free(__atomic_exchange_n(&slots[random >> 40 & (SLOTS - 1)], p, __ATOMIC_ACQ_REL));
        if (random >> 54 == 0)
            do_free(do_realloc(do_malloc(3 * MiB), 4 * MiB));
    }
    return NULL;
}

/* The child of a process of many threads has what these were just doing. */
static void check_in_a_child(void)
{
    CHECK_SIZE("breaches of a child's heap", (size_t)hakmem_check(), 0);
    void *p = NEED("malloc", do_malloc(1000));
    hakmem_purge(); /* takes in what the other threads' caches held */
    do_free(p);
    CHECK_SIZE("breaches of a child's heap", (size_t)hakmem_check(), 0);
}

TEST(check_while_threads_work)
{
    if (CHECK_UNDER_THREAD_SANITIZER)
        return; /* what others change without a lock is read as it comes */
    pthread_t threads[3];
    threads_start(threads, 3, busy);
    for (int i = 0; i < 200; i++) {
        CHECK_SIZE("hakmem_check", (size_t)hakmem_check(), 0);
        stats_now();
        if (i % 20 == 0)
            hakmem_purge();
        sched_yield();
    }
    for (int i = 0; i < 20; i++)
        in_child(check_in_a_child);
    __atomic_store_n(&stop, true, __ATOMIC_RELAXED);
    threads_join(threads, 3);
    for (int i = 0; i < SLOTS; i++)
        do_free(slots[i]);
    CHECK_SIZE("hakmem_check when they are gone", (size_t)hakmem_check(), 0);
    struct hakmem_stats after = stats_now();
    sum_is_mapped(&after);
}

int main(void)
{
    check_start("heap");
    CHECK_SIZE("hakmem_check", (size_t)hakmem_check(), 0);
    tests_run();
    CHECK_SIZE("hakmem_check", (size_t)hakmem_check(), 0);
    return check_end();
}

/* A thread's pocket: the large block that was freed last. */
#include "life/life.h"
#include "os/os.h"
#include "unit.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "back/large.h"
#include "base/policy.h"
#include "front/cache.h"
#include "front/pocket.h"
#include "front/registry.h"
#include "hakmem/hakmem.h"
#include "life/purge.h"

static const size_t sizes[] = {CLASS_SLICES_MOST + 1, 512 * KiB, MiB,      RUN_MOST,
                               RUN_MOST + 1,          4 * MiB,   16 * MiB, 64 * MiB};
#define SIZES (sizeof sizes / sizeof *sizes)

static struct hakmem_stats stats(void)
{
    struct hakmem_stats s;
    hakmem_stats(&s, sizeof s);
    EXPECT_EQUAL(s.program + s.thread_caches + s.transfer + s.free_in_slabs + s.rest + s.retained +
                     s.untouched + s.kept + s.metadata + s.map,
                 s.mapped);
    EXPECT_EQUAL(hakmem_check(), 0);
    return s;
}

/* Until the pocket is in use, whatever was before. */
static void use(void)
{
    for (unsigned i = 0; i < 40; i++)
        hakmem_free(hakmem_malloc(MiB));
    EXPECT_EQUAL(stats().thread_caches, MiB);
    hakmem_purge();
}

static size_t slices(size_t n) { return round_up(n, SLICE); }

static void what_was_freed_last_comes_back(void)
{
    for (unsigned i = 0; i < SIZES; i++) {
        char *p = hakmem_malloc(sizes[i]);
        p[0] = p[sizes[i] - 1] = 7;
        struct hakmem_stats before = stats();
        hakmem_free(p);
        struct hakmem_stats after = stats();
        EXPECT_EQUAL(after.thread_caches - before.thread_caches, slices(sizes[i]));
        EXPECT_EQUAL(after.mapped, before.mapped);
        EXPECT_EQUAL((uintptr_t)hakmem_malloc(sizes[i]), (uintptr_t)p);
        EXPECT_EQUAL(p[0] + p[sizes[i] - 1], 14);
        EXPECT_EQUAL(hakmem_malloc_usable_size(p), round_up(sizes[i], os_page));
        EXPECT_EQUAL(stats().program, before.program);
        hakmem_free(p);
    }
    hakmem_purge();
}

static void the_same_slices_serve_another_size(void)
{
    use();
    char *p = hakmem_malloc(512 * KiB);
    hakmem_free(p);
    char *q = hakmem_malloc(512 * KiB - SLICE + 1);
    EXPECT_EQUAL((uintptr_t)q, (uintptr_t)p);
    EXPECT_EQUAL(hakmem_malloc_usable_size(q), round_up(512 * KiB - SLICE + 1, os_page));
    hakmem_free(q);
    hakmem_purge();
}

static void another_size_puts_it_back_first(void)
{
    use();
    for (unsigned i = 0; i < SIZES; i++) {
        hakmem_free(hakmem_malloc(sizes[i]));
        void *other = hakmem_malloc(3 * MiB + sizes[i] / 2);
        EXPECT_EQUAL(stats().thread_caches, 0);
        hakmem_free(other);
        hakmem_purge();
    }
}

static void a_clean_block_is_asked_for_and_made(void)
{
    use();
    char *p = hakmem_malloc(MiB);
    memset(p, 7, MiB);
    hakmem_free(p);
    p = hakmem_calloc(1, MiB);
    for (size_t i = 0; i < MiB; i++)
        EXPECT_EQUAL(p[i], 0);
    hakmem_free(p);
    p = hakmem_aligned_alloc(MiB, MiB);
    EXPECT_EQUAL((uintptr_t)p % MiB, 0);
    hakmem_free(p);
    hakmem_purge();
}

static void age(void)
{
    purge_stop();
    pocket_age(cache_current());
    purge_go_on();
}

static void it_is_emptied(void)
{
    use();
    hakmem_free(hakmem_malloc(MiB));
    EXPECT_EQUAL(stats().thread_caches, MiB);
    hakmem_purge();
    EXPECT_EQUAL(stats().thread_caches, 0);

    hakmem_free(hakmem_malloc(4 * MiB));
    age();
    EXPECT_EQUAL(stats().thread_caches, 4 * MiB);
    age();
    EXPECT_EQUAL(stats().thread_caches, 0);
    EXPECT_EQUAL(stats().kept, 4 * MiB);
    hakmem_purge();
}

static void the_caps_hold(void)
{
    use();
    struct keeping before = keeping;
    keeping.huge = 4 * MiB;
    keeping.slices = 16;
    hakmem_free(hakmem_malloc(4 * MiB + 1));
    EXPECT_EQUAL(stats().thread_caches, 0);
    hakmem_free(hakmem_malloc(MiB + 1));
    EXPECT_EQUAL(stats().thread_caches, 0);
    hakmem_purge(); /* so that a mapping of 4 MiB is made */
    hakmem_free(hakmem_malloc(4 * MiB));
    EXPECT_EQUAL(stats().thread_caches, 4 * MiB);
    hakmem_free(hakmem_malloc(MiB));
    EXPECT_EQUAL(stats().thread_caches, MiB);
    keeping = before;
    hakmem_purge();
}

static void *nap(void *until)
{
    hakmem_free(hakmem_malloc(100)); /* it has a cache */
    while (!__atomic_load_n((int *)until, __ATOMIC_ACQUIRE))
        usleep(1000);
    return NULL;
}

/* With more threads each may have less. */
static void pockets_share_the_caps(void)
{
    use();
    int done = 0;
    pthread_t threads[15];
    for (unsigned i = 0; i < 15; i++)
        pthread_create(&threads[i], NULL, nap, &done);
    while (caches_awake() < 16)
        usleep(1000);
    const size_t most = BIG_CACHE_FIRST / 16;
    hakmem_free(hakmem_malloc(most + 1));
    EXPECT_EQUAL(cache_current()->pocket.block == NULL, 1);
    hakmem_purge();
    use();
    hakmem_free(hakmem_malloc(most));
    EXPECT_EQUAL(cache_current()->pocket.block == NULL, 0);
    __atomic_store_n(&done, 1, __ATOMIC_RELEASE);
    for (unsigned i = 0; i < 15; i++)
        pthread_join(threads[i], NULL);
    hakmem_purge();
}

/* Once it has not fitted for a while it is tried now and then, until it does again. */
static void it_stays_out_of_the_way(void)
{
    use();
    unsigned used = 0;
    for (unsigned i = 0; i < 160; i++) {
        hakmem_free(hakmem_malloc((5 + i % 20) * SLICE));
        used += stats().thread_caches != 0;
    }
    EXPECT(used >= 8 && used <= 8 + 160 / 16);
    use();
    void *p = hakmem_malloc(MiB);
    hakmem_free(p);
    EXPECT_EQUAL(stats().thread_caches, MiB);
    EXPECT_EQUAL((uintptr_t)hakmem_malloc(MiB), (uintptr_t)p);
    hakmem_free(p);
    hakmem_purge();
}

/* Blocks that go from thread to thread while another steals all that it can. */
static void *shared[4];
static int end;

static void *hand_over(void *seed)
{
    uint64_t random = (uintptr_t)seed;
    for (unsigned i = 0; i < 20000; i++) {
        random = random * 6364136223846793005U + 1442695040888963407U;
        size_t n = sizes[(random >> 40) % 5];
        char *p = hakmem_malloc(n);
        EXPECT(p != NULL);
        p[0] = 1;
        p[n - 1] = 1;
        hakmem_free(__atomic_exchange_n(&shared[(random >> 50) % 4], p, __ATOMIC_ACQ_REL));
    }
    return NULL;
}

static void *steal(void *unused)
{
    while (!__atomic_load_n(&end, __ATOMIC_ACQUIRE))
        purge_all(thread_cache(), 0);
    return unused;
}

static void threads_and_a_thief(void)
{
    pthread_t threads[3], thief;
    pthread_create(&thief, NULL, steal, NULL);
    for (uintptr_t i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, hand_over, (void *)(i + 1)); // NOLINT
    for (unsigned i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    __atomic_store_n(&end, 1, __ATOMIC_RELEASE);
    pthread_join(thief, NULL);
    for (unsigned i = 0; i < 4; i++)
        hakmem_free(shared[i]);
    hakmem_purge();
    EXPECT_EQUAL(stats().thread_caches, 0);
}

int main(void)
{
    policy.extra_calls = 1; /* a purge reaches sleeping threads */
    policy.scavenger = 0;   /* which would empty pockets of its own accord */
    what_was_freed_last_comes_back();
    the_same_slices_serve_another_size();
    another_size_puts_it_back_first();
    a_clean_block_is_asked_for_and_made();
    it_is_emptied();
    the_caps_hold();
    pockets_share_the_caps();
    it_stays_out_of_the_way();
    threads_and_a_thief();
    puts("9 passed, 0 failed");
    return 0;
}

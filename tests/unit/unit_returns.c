/* What goes back to the kernel by time, and what is counted as gone back in vain. In one thread, so
 * nobody else looks. */
#include "unit.h"

#include <string.h>
#include <time.h>

#include "back/use.h"
#include "base/policy.h"
#include "front/cache.h"
#include "hakmem/hakmem.h"
#include "heap/classes.h"
#include "heap/shards.h"
#include "heap/transfer.h"
#include "learn/laws.h"
#include "life/purge.h"
#include "os/lock.h"
#include "os/os.h"

/* So much stays in use that no free gives back at once what the tests free. */
#define LIVE (128 * MiB)
#define BETWEEN 5 /* a class of small blocks */

static void *live;

static void *taken(size_t n)
{
    char *p = hakmem_malloc(n);
    EXPECT(p != NULL);
    memset(p, 1, n);
    return p;
}

/* A look notes what is idle, and the next gives back what still is. */
static void looks(void)
{
    for (unsigned i = 0; i < 3; i++)
        purge_by_time();
}

static size_t worked(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (size_t)now.tv_sec * 1000 + (size_t)now.tv_nsec / 1000000;
}

static void whole_slices(void)
{
    enum { COUNT = 40 };
    static void *blocks[COUNT];
    size_t before = counters.slices.purged;
    for (unsigned i = 0; i < COUNT; i++)
        blocks[i] = taken(100 * KiB);
    for (unsigned i = 0; i < COUNT; i++)
        hakmem_free(blocks[i]);
    EXPECT(use.dirty_slices > 0);
    looks();
    EXPECT_EQUAL(use.dirty_slices, 0);
    EXPECT(counters.slices.purged > before);
}

static void huge_blocks(void)
{
    hakmem_free(taken(10 * MiB));
    EXPECT(use.dirty_huge > 0);
    size_t before = counters.huge.purged;
    looks();
    EXPECT_EQUAL(use.dirty_huge, 0);
    EXPECT(counters.huge.purged >= before + 10 * MiB);
}

/* What lies in stacks of large blocks is found by the second look that it stays through. Again, as
 * the calls look by time, too. */
static void large_blocks_in_stacks(void)
{
    for (unsigned i = 0; i < 20 && use.stacked == 0; i++) {
        hakmem_free(taken(MiB));
        hakmem_free(taken(MiB));
        purge_by_time();
    }
    EXPECT_EQUAL(use.stacked, size_classes[class_of_slices(MiB)].size);
    looks();
    EXPECT_EQUAL(use.stacked, 0);
}

/* What one thread freed and no other took. */
static void blocks_between_threads(void)
{
    void *p;
    lock_take(&cacheless_lock);
    EXPECT_EQUAL(shard_take(0, BETWEEN, &p + 1, 1), 1);
    EXPECT_EQUAL(transfer_put(BETWEEN, &p, 1), 1);
    EXPECT_EQUAL(shards_check(p), MISUSE_NONE);
    lock_release(&cacheless_lock);
    looks();
    lock_take(&cacheless_lock);
    EXPECT(shards_check(p) != MISUSE_NONE);
    lock_release(&cacheless_lock);
}

/* One block in each slab stays. */
static void pages_of_slabs(void)
{
    enum { COUNT = 8192, KEPT_OF = 64 };
    static void *blocks[COUNT];
    size_t before = counters.pages.purged;
    if (os_page > 16 * KiB)
        return; /* a slab has but one page */
    for (unsigned i = 0; i < COUNT; i++)
        blocks[i] = taken(1000);
    for (unsigned i = 0; i < COUNT; i++)
        if (i % KEPT_OF != 0)
            hakmem_free(blocks[i]);
    looks();
    EXPECT(counters.pages.purged >= before + COUNT * 1000 / 2);
    for (unsigned i = 0; i < COUNT; i += KEPT_OF)
        hakmem_free(blocks[i]);
}

/* Processor time pays off what went back in vain; what is wanted again counts. */
static void work_pays(void)
{
    const size_t vain = 50 * LAW_WORK_MS;
    use.vain = vain;
    purge_by_time(); /* from now on */
    use.vain = vain;
    for (size_t end = worked() + 200; worked() < end;)
        ;
    purge_by_time();
    EXPECT_EQUAL(use.vain, 0);
    for (unsigned i = 0; i < 20 && use.vain == 0; i++) {
        looks();
        hakmem_free(taken(10 * MiB));
        purge_by_time();
    }
    EXPECT(use.vain > 0);
}

static void some_dirty(void)
{
    enum { COUNT = 4 };
    void *blocks[COUNT];
    for (unsigned i = 0; i < COUNT; i++)
        blocks[i] = taken(3 * MiB);
    for (unsigned i = 0; i < COUNT; i++)
        hakmem_free(blocks[i]);
    EXPECT(use.dirty_huge > 0);
}

/* What is beyond the bound goes back by calls, a part in each, and by time. */
static void what_may_not_be_kept(void)
{
    const size_t keep = limits.keep, option = policy.keep_bytes;
    some_dirty();
    limits.keep = 0;
    purge_step(false, 0);
    EXPECT(use.dirty_huge == 0 || purge_goes_on);
    for (unsigned i = 0; i < 20 && purge_goes_on; i++)
        purge_step(false, 0);
    EXPECT_EQUAL(use.dirty_huge, 0);
    limits.keep = keep;
    some_dirty();
    policy.keep_bytes = 0;
    limits.keep = 0;
    purge_by_time();
    EXPECT_EQUAL(use.dirty_huge, 0);
    policy.keep_bytes = option;
    limits.keep = keep;
}

/* A heap that grows gives up what is idle until no more is held than was in use at once. */
static void what_a_growing_heap_gives_up(void)
{
    const size_t most = use.most;
    some_dirty();
    use.most = use.slices + use.huge;
    EXPECT_EQUAL(use_excess(), 0);
    limits.shrinks = true;
    EXPECT_EQUAL(use_excess(), use.held - use.most);
    purge_by_time(); /* and ends it */
    EXPECT_EQUAL(use.dirty_huge, 0);
    EXPECT(!limits.shrinks);
    use.most = most;
}

static void count(void *calls) { ++*(unsigned *)calls; }

/* Who passed the soft limit is told, unless what was idle brings the heap below it: then the next
 * crossing counts again. */
static void at_the_soft_limit(void)
{
    unsigned calls = 0;
    soft_limit_listen(count, &calls);
    some_dirty();
    limits.watched = false;
    limits.passed = true;
    limits.soft = use.held - use.dirty_huge;
    soft_limit_act(cache_current());
    EXPECT_EQUAL(calls, 0);
    EXPECT(limits.watched && !limits.passed);
    limits.watched = false;
    limits.passed = true;
    limits.soft = MiB;
    soft_limit_act(cache_current());
    soft_limit_act(cache_current()); /* nobody passed it since */
    EXPECT_EQUAL(calls, 1);
    EXPECT(!limits.watched && !limits.passed);
    limits.soft = SIZE_MAX;
    limits.watched = true;
    soft_limit_listen(NULL, NULL);
}

/* Who says anew how much is kept is not refused for what was before. */
static void a_new_bound_forgets(void)
{
    use.vain = 3 * use.most;
    EXPECT_EQUAL(hakmem_option_set("keep_bytes", 0), 0);
    EXPECT_EQUAL(use.vain, 0);
    EXPECT_EQUAL(hakmem_option_set("keep_bytes", HAKMEM_AUTO), 0);
}

int main(void)
{
    hakmem_free(hakmem_malloc(1));   /* the process's start */
    policy.container_limits = false; /* nothing is read of this machine's */
    live = taken(LIVE);
    whole_slices();
    huge_blocks();
    large_blocks_in_stacks();
    blocks_between_threads();
    pages_of_slabs();
    work_pays();
    what_may_not_be_kept();
    what_a_growing_heap_gives_up();
    at_the_soft_limit();
    a_new_bound_forgets();
    hakmem_free(live);
    puts("10 passed, 0 failed");
    return 0;
}

/* A heap of which most was freed here and there becomes smaller by the program's own turnover, and
 * what it holds stays as it was. With the option compact it does, without it it does not. */
#include "../api/stats.h"
#include "../stress/statm.h"
#include "trap.h"

#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define N 200000
#define LIVE (N / 5)

struct item {
    unsigned char *p;
    size_t size;
    unsigned char content;
};

static unsigned random_below(uint64_t *state, unsigned n)
{
    *state = *state * 6364136223846793005U + 1442695040888963407U;
    return (unsigned)((*state >> 32) * n >> 32);
}

static void fill(struct item *item, uint64_t *state)
{
    item->size = 250 + random_below(state, 101);
    item->content = (unsigned char)random_below(state, 256);
    item->p = memset(NEED("malloc", malloc(item->size)), item->content, item->size);
}

static void drop(struct item *item)
{
    for (size_t i = 0; i < item->size; i += item->size / 4)
        CHECK(item->p[i] == item->content, "byte %zu of a block of %zu: expected %u, found %u", i,
              item->size, item->content, item->p[i]);
    free(item->p);
}

static void turn(struct item *items, uint64_t *state)
{
    struct item fresh;
    struct item *old = &items[random_below(state, LIVE)];
    fill(&fresh, state);
    drop(old);
    *old = fresh;
}

static void drop_most(struct item *items, uint64_t *state)
{
    for (unsigned i = 0; i < N; i++)
        fill(&items[i], state);
    for (unsigned left = N; left > LIVE; left--) {
        struct item *one = &items[random_below(state, left)];
        drop(one);
        *one = items[left - 1];
    }
}

/* What is resident after the turnover, without what only waits to go back. */
static size_t after_turnover(struct item *items, uint64_t state)
{
    drop_most(items, &state);
    for (unsigned i = 0; i < 4 * LIVE; i++)
        turn(items, &state);
    malloc_trim(0);
    return statm_read().resident;
}

static void *in_another_thread(void *items)
{
    size_t before = statm_read().resident;
    size_t resident = after_turnover(items, 2) - before;
    CHECK(resident <= LIVE * 300 * 2, "a thread beside another: resident %zu KiB", resident / KiB);
    for (unsigned i = 0; i < LIVE; i++)
        drop((struct item *)items + i);
    return NULL;
}

TEST_IN_CHILD(turnover_compacts)
{
    struct item *items = NEED("malloc", malloc(N * sizeof *items));
    memset(items, 0, N * sizeof *items);
    size_t before = statm_read().resident;
    size_t resident = after_turnover(items, 1) - before;
    bool on = getenv("HAKMEM_COMPACT") == NULL;
    struct hakmem_stats stats = stats_now();
    CHECK((stats.compactions > 0) == on && (stats.compacted >= LIVE * 250) == on,
          "compact %s: %zu compactions of %zu bytes", on ? "on" : "off", stats.compactions,
          stats.compacted);
    CHECK(on ? stats.regained >= LIVE * 300 && stats.regained <= N * 350 : stats.regained == 0,
          "live %d KiB, compact %s: regained %zu KiB", LIVE * 300 / 1024, on ? "on" : "off",
          stats.regained / KiB);
    CHECK_SIZE("hakmem_check", (size_t)hakmem_check(), 0);
    CHECK(on ? resident <= LIVE * 300 * 2 : resident >= LIVE * 300 * 3,
          "live %d KiB, compact %s: resident %zu KiB", LIVE * 300 / 1024, on ? "on" : "off",
          resident / KiB);
    for (unsigned i = 0; i < LIVE; i++)
        drop(&items[i]);
    if (on)
        in_thread(in_another_thread, items);
    free(items);
}

/* Whether the program rests is still seen: it makes pairs of calls now and then. */
TEST_IN_CHILD(rests_are_seen_while_a_class_compacts)
{
    enum { BLOCKS = 128 * 1024, KEPT = 100, SECONDS = 60 };
    static char *blocks[BLOCKS];
    for (int i = 0; i < BLOCKS; i++)
        blocks[i] = memset(NEED("malloc", malloc(1024)), 1, 1024);
    for (int i = 0; i < BLOCKS; i++)
        if (i % KEPT != 0)
            free(blocks[i]);
    size_t resident = SIZE_MAX;
    for (int i = 0; i < SECONDS * 1000 && resident > 32 * MiB; i++) {
        free(NEED("malloc", malloc(1024)));
        usleep(1000);
        resident = statm_read().resident;
    }
    CHECK(resident <= 32 * MiB, "128 MiB freed, then pairs of calls for a minute: resident %zu KiB",
          resident / KiB);
}

/* Also if the stacks serve all calls from then on. */
TEST_IN_CHILD(what_is_left_empty_goes_back)
{
    if (getenv("HAKMEM_COMPACT") != NULL)
        return;
    static struct item items[N];
    uint64_t state = 3;
    enum { MOST_TURNS = 100 * 1000 * 1000 };
    drop_most(items, &state);
    size_t resident = SIZE_MAX;
    for (unsigned i = 0; i < MOST_TURNS && resident > LIVE * 300 * 3; i++) {
        turn(items, &state);
        if (i % LIVE == 0)
            resident = statm_read().resident;
    }
    CHECK(resident <= LIVE * 300 * 3, "live %d KiB: resident %zu KiB", LIVE * 300 / 1024,
          resident / KiB);
}

/* A stack learns how many blocks a burst takes, though the class compacts for ever because nothing
 * of what is left is freed. */
TEST_IN_CHILD(bursts_among_survivors_are_cheap)
{
    if (getenv("HAKMEM_COMPACT") != NULL)
        return;
    enum { BLOCKS = 256 * 1024, KEPT_OF = 3, BURST = 1000, BURSTS = 10000 };
    static void *blocks[BLOCKS], *burst[BURST];
    for (int i = 0; i < BLOCKS; i++)
        blocks[i] = NEED("malloc", malloc(64));
    for (int i = 0; i < BLOCKS; i++)
        if (i % KEPT_OF != 0)
            free(blocks[i]);
    struct hakmem_stats before = stats_now();
    CHECK(before.compactions > 0, "compactions: expected some, found %zu", before.compactions);
    for (int i = 0; i < BURSTS; i++) {
        for (int j = 0; j < BURST; j++)
            burst[j] = NEED("malloc", malloc(64));
        for (int j = 0; j < BURST; j++)
            free(burst[j]);
    }
    struct hakmem_stats after = stats_now();
    CHECK(after.refills - before.refills < BURSTS / 10, "%d bursts: %zu refills", BURSTS,
          after.refills - before.refills);
}

int main(void) { return tests_main("compact"); }

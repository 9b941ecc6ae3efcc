/* Stacks that are closed to frees stay closed, whatever opens stacks: while their cache rests, and
 * while each of its frees is to take the slow path. The cache is another thread's, which waits. */
#include "unit.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>

#include "front/adapt.h"
#include "front/closer.h"
#include "front/refill.h"
#include "front/registry.h"
#include "front/stack.h"
#include "front/stacks.h"
#include "hakmem/hakmem.h"
#include "life/life.h"
#include "life/purge.h"
#include "os/lock.h"
#include "os/os.h"

static sem_t turn_owner, turn_main;
static struct cache *cache;
static void (*to_do)(void);

static void *own(void *unused)
{
    void *blocks[8];
    for (size_t i = 0; i < 8; i++)
        blocks[i] = hakmem_malloc(100 * i + 20);
    for (size_t i = 0; i < 8; i++)
        hakmem_free(blocks[i]);
    cache = cache_current();
    for (;;) {
        sem_post(&turn_main);
        sem_wait(&turn_owner);
        if (to_do == NULL)
            return unused;
        to_do();
    }
}

static void by_owner(void (*what)(void))
{
    to_do = what;
    sem_post(&turn_owner);
    if (what != NULL)
        sem_wait(&turn_main);
}

/* ---- what opens stacks ---- */

static void everything_reopens(void) { caches_reopen(); }
static void visits_end(void) { cache_ask_visits(cache, false); }

static void capacities_start(void)
{
    lock_take(cache->lock);
    for (unsigned stack = begun_from(cache, 0); stack < STACKS;
         stack = begun_from(cache, stack + 1))
        stack_start_capacity(cache, stack);
    lock_release(cache->lock);
}

static void refills(void)
{
    static void *blocks[5000];
    size_t before = cache->refills;
    for (size_t i = 0; i < 5000; i++)
        blocks[i] = hakmem_malloc(100);
    EXPECT(cache->refills > before);
    (void)blocks;
}

/* ---- what keeps them closed ---- */

static size_t stacks_that_are_open(void)
{
    size_t open = 0;
    lock_take(cache->lock);
    for (unsigned stack = begun_from(cache, 0); stack < STACKS;
         stack = begun_from(cache, stack + 1))
        open += cache->bins[BIN_FIRST + stack].limit != NULL;
    lock_release(cache->lock);
    return open;
}

static void set(bool rests, bool visits)
{
    lock_take(cache->lock);
    cache->rests = rests;
    cache->visits = visits;
    stacks_open(cache);
    lock_release(cache->lock);
}

static void stay_closed(const char *what, void (*opens)(void), bool rests, bool visits)
{
    set(rests, visits);
    EXPECT_EQUAL(stacks_that_are_open(), 0);
    opens();
    if (stacks_that_are_open() != 0)
        fprintf(stderr, "%s, %s:\n", what, rests ? "rests" : "visits the slow path");
    EXPECT_EQUAL(stacks_that_are_open(), 0);
    set(false, false);
    opens();
    EXPECT(stacks_that_are_open() > 0);
}

static void a_refill_ends_the_rest(void)
{
    set(true, false);
    EXPECT_EQUAL(stacks_that_are_open(), 0);
    by_owner(refills);
    EXPECT(!cache->rests);
    EXPECT(stacks_that_are_open() > 0);
}

int main(void)
{
    static const struct {
        const char *name;
        void (*opens)(void);
        bool ends_visits;
    } cases[] = {
        {"caches_reopen", everything_reopens, false},
        {"cache_ask_visits", visits_end, true},
        {"a new capacity", capacities_start, false},
    };
    pthread_t owner;
    sem_init(&turn_owner, 0, 0);
    sem_init(&turn_main, 0, 0);
    hakmem_free(hakmem_malloc(1));
    EXPECT_EQUAL(pthread_create(&owner, NULL, own, NULL), 0);
    sem_wait(&turn_main);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        stay_closed(cases[i].name, cases[i].opens, true, false);
        if (!cases[i].ends_visits)
            stay_closed(cases[i].name, cases[i].opens, false, true);
    }
    a_refill_ends_the_rest();
    by_owner(NULL);
    pthread_join(owner, NULL);
    printf("%zu passed, 0 failed\n", sizeof cases / sizeof *cases + 1);
    return 0;
}

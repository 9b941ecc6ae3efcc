/* A cache that is closed to frees stays closed while a reason is left, whatever other reason ends:
 * while its thread rests, while each free is to take the slow path, while an order waits. The cache
 * is another thread's, which waits. */
#include "unit.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>

#include "base/policy.h"
#include "front/cache.h"
#include "front/refill.h"
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

static void orders_end(void) { heap_open_ordered(); }

static void set(enum closing reason, bool on)
{
    lock_take(cache->lock);
    cache_close(cache, reason, on);
    lock_release(cache->lock);
}

static void a_recording_ends(void)
{
    lock_take(&cacheless_lock);
    EXPECT(heap_close(CLOSED_RECORDED, true));
    EXPECT(heap_close(CLOSED_RECORDED, false));
    lock_release(&cacheless_lock);
}

static void visits_end(void)
{
    set(CLOSED_VISITS, true);
    set(CLOSED_VISITS, false);
}

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
        open += cache->bins[BIN_FIRST + stack].inverse != 0;
    lock_release(cache->lock);
    return open;
}

static void stay_closed(const char *what, void (*opens)(void), enum closing reason)
{
    set(reason, true);
    EXPECT(stacks_that_are_open() == 0);
    opens();
    if (stacks_that_are_open() > 0)
        fprintf(stderr, "%s, reason %d:\n", what, (int)reason);
    EXPECT(stacks_that_are_open() == 0);
    set(reason, false);
    EXPECT(stacks_that_are_open() > 0);
}

static void a_refill_ends_the_rest(void)
{
    cache->ebb = 1;
    set(CLOSED_RESTS, true);
    EXPECT_EQUAL(stacks_that_are_open(), 0);
    by_owner(refills);
    EXPECT(!cache_rests(cache));
    EXPECT(stacks_that_are_open() > 0);
}

/* As look/order.c does it: the reason, then the stacks. */
static void an_order_stays(void)
{
    store_relaxed(&closed_from_outside, 1);
    lock_take(cache->lock);
    for (unsigned stack = 0; stack < STACKS; stack++)
        store_relaxed(&cache->bins[BIN_FIRST + stack].inverse, 0);
    lock_release(cache->lock);
    visits_end();
    a_recording_ends();
    capacities_start();
    EXPECT_EQUAL(stacks_that_are_open(), 0);
    heap_open_ordered();
    EXPECT(stacks_that_are_open() > 0);
}

int main(void)
{
    static const struct {
        const char *name;
        void (*opens)(void);
        enum closing but;
    } cases[] = {
        {"an order", orders_end, 0},
        {"a recording", a_recording_ends, 0},
        {"visits", visits_end, CLOSED_VISITS},
        {"a new capacity", capacities_start, 0},
    };
    pthread_t owner;
    sem_init(&turn_owner, 0, 0);
    sem_init(&turn_main, 0, 0);
    hakmem_free(hakmem_malloc(1));
    policy.scavenger = false; /* it would obey */
    EXPECT_EQUAL(pthread_create(&owner, NULL, own, NULL), 0);
    sem_wait(&turn_main);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        stay_closed(cases[i].name, cases[i].opens, CLOSED_RESTS);
        if (cases[i].but != CLOSED_VISITS)
            stay_closed(cases[i].name, cases[i].opens, CLOSED_VISITS);
    }
    a_refill_ends_the_rest();
    an_order_stays();
    by_owner(NULL);
    pthread_join(owner, NULL);
    printf("%zu passed, 0 failed\n", sizeof cases / sizeof *cases + 2);
    return 0;
}

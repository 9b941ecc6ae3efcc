/* What is explored: README.md. Usage: explore [SCENARIO [CALLS [PREEMPTIONS [DELAYS]]]] */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "explore.h"
#include "front/cache.h"
#include "os/lock.h"
#include "world.h"

/* ---- a cache's owner ---- */

static struct cache *owners;
static void *first; /* the program has it from the beginning */
static size_t block_size;
/* Of the owner: m malloc, f free of what came last, h hand it to another thread, e end. */
static const char *calls;

static void owner_prepare(void)
{
    world_begin(block_size);
    owners = world_cache(0);
    first = program_malloc();
}

static void owner(void)
{
    void *has[8] = {first};
    unsigned count = 1;
    for (const char *c = calls; *c != 0; c++) {
        if (*c == 'm')
            has[count++] = program_malloc();
        else if (*c == 'e')
            program_end();
        else if (*c == 'h')
            program_hand(has[--count]);
        else if (count > 0)
            program_free(has[--count]);
    }
}

/* A cache whose thread has ended holds nothing. */
static void owner_finish(void) { world_audit(owners); }

/* ---- a fork ---- */

static struct cache *forkers;

static void fork_prepare(void)
{
    owner_prepare();
    forkers = world_cache(1);
}

/* The child's memory is that of this moment. Of what the program has the child knows what it got
 * from the owner. It needs more blocks than its own stack holds, so it takes what the owner's
 * stacks hold. */
static void forker(void)
{
    void *p = program_receive();
    caches_fork_lock();
    explore_only_this();
    world_keeps_only(p);
    caches_fork_unlock_child(forkers);
    program_malloc();
    program_malloc();
    program_malloc();
    program_malloc();
}

/* ---- a lock ---- */

static struct lock lock;
static unsigned inside;

static void lock_prepare(void)
{
    explore_own_number(&lock_number);
    explore_watch(&lock, sizeof lock, "lock");
    explore_restore(&lock, sizeof lock);
    explore_restore(&inside, sizeof inside);
}

static void locker(void)
{
    for (int i = 0; i < 2; i++) {
        lock_take(&lock);
        EXPECT(inside++ == 0, "two threads have the lock");
        inside--;
        lock_release(&lock);
    }
}

/* ---- closing all caches ---- */

static void closer(void)
{
    heap_close(CLOSED_CHECKED, true);
    world_closed = true;
}

/* They were closed before, and the owner has made no call since: it finds its cache again while all
 * are closed. */
static void away_prepare(void)
{
    owner_prepare();
    cache_mine = &cache_none;
    explore_own_word(&cache_mine, 0);
}

/* ---- all of them ---- */

static const struct scenario forks = {
    .name = "fork", .prepare = fork_prepare, .threads = {owner, forker}};
static const struct scenario closing = {
    .name = "close", .prepare = owner_prepare, .threads = {owner, closer}, .finish = owner_finish};
static const struct scenario closing_away = {
    .name = "close", .prepare = away_prepare, .threads = {owner, closer}, .finish = owner_finish};
static const struct scenario locking = {
    .name = "lock", .prepare = lock_prepare, .threads = {locker, locker, locker}};

#define ROOMY 64  /* a stack holds more than there are */
#define TIGHT 256 /* it holds two: the third free finds it full */

static const struct {
    const struct scenario *scenario;
    const char *calls;
    size_t block_size;
    unsigned preemptions, delays;
} cases[] = {
    {&forks, "mhf", ROOMY, 2, 1},       {&forks, "fmhm", ROOMY, 2, 1},
    {&forks, "mhf", TIGHT, 2, 0},       {&closing, "mf", ROOMY, 3, 1},
    {&closing, "fm", ROOMY, 3, 1},      {&closing, "fe", ROOMY, 2, 1},
    {&closing_away, "mf", ROOMY, 2, 1}, {&locking, "", 0, 3, 0},
};

int main(int count, char **arguments)
{
    const char *only = count > 1 ? arguments[1] : "";
    bool any = false;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct scenario scenario = *cases[i].scenario;
        if (strncmp(scenario.name, only, strlen(only)) != 0)
            continue;
        any = true;
        block_size = cases[i].block_size;
        calls = count > 2 ? arguments[2] : cases[i].calls;
        scenario.preemptions = count > 3 ? (unsigned)atoi(arguments[3]) : cases[i].preemptions;
        scenario.delays = count > 4 ? (unsigned)atoi(arguments[4]) : cases[i].delays;
        printf("%s ", calls);
        fflush(stdout);
        pid_t self = getpid(), child = fork(); /* each begins with all memory as new */
        if (child == 0) {
            /* Who stops this program for what a wrong order makes endless stops both. */
            if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != self)
                return 1;
            exit(!explore(&scenario));
        }
        int status;
        if (waitpid(child, &status, 0) != child || status != 0)
            return 1;
    }
    if (!any)
        fprintf(stderr, "explore: %s: there is no such scenario\n", only);
    return any ? 0 : 2;
}

/* Memory kept for reuse serves any size before malloc fails. And corner cases: a block that can't
 * shrink elsewhere stays; the old address of a moved mapping may be another thread's at once; a
 * signal handler that interrupted malloc may fork. */
#include "../stress/statm.h"
#include "check.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

/* Leaves `more` bytes of address space beyond what is mapped now. */
static void limit_address_space(size_t more)
{
    size_t mapped = statm_read().mapped, most = mapped + more;
    struct rlimit limit = {most, most};
    CHECK(mapped > 0 && setrlimit(RLIMIT_AS, &limit) == 0, "the limit could not be set");
}

/* Blocks of `size` until there is no memory; how many bytes that were. */
static size_t fill(size_t size)
{
    size_t total = 0;
    while (do_malloc(size) != NULL)
        total += size;
    return total;
}

TEST_IN_CHILD(small_from_kept)
{
    do_free(do_malloc(1));
    limit_address_space(80 * MiB);
    void *huge = do_malloc(60 * MiB);
    CHECK(huge != NULL, "expected 60 MiB of 80, found null");
    do_free(huge);
    size_t small = fill(100);
    CHECK(small >= 55 * MiB, "expected at least 55 MiB of blocks of 100 bytes, found %zu MiB",
          small / MiB);
}

TEST_IN_CHILD(huge_from_superslabs)
{
    enum { BLOCKS = 100 };
    static void *blocks[BLOCKS];
    limit_address_space(80 * MiB);
    for (int i = 0; i < BLOCKS; i++)
        blocks[i] = do_malloc(600 * KiB);
    for (int i = 0; i < BLOCKS; i++)
        do_free(blocks[i]);
    void *huge = do_malloc(55 * MiB);
    CHECK(huge != NULL, "expected 55 MiB of 80, found null");
}

/* A limit that was set while the program runs: what was freed again and again, and so is kept,
 * leaves room for others. */
TEST_IN_CHILD(others_have_room)
{
    enum { BLOCKS = 15, ROUNDS = 8 };
    static void *blocks[BLOCKS];
    limit_address_space(200 * MiB);
    for (int round = 0; round < ROUNDS; round++) {
        if (round == ROUNDS - 1)
            usleep(300000); /* until the limits are read again */
        for (int i = 0; i < BLOCKS; i++) {
            blocks[i] = NEED("malloc", do_malloc(10 * MiB));
            memset(blocks[i], 1, 10 * MiB);
        }
        for (int i = 0; i < BLOCKS; i++)
            do_free(blocks[i]);
    }
    void *other = mmap(NULL, 100 * MiB, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(other != MAP_FAILED, "expected 100 MiB of 200 for others, of which all is free");
}

TEST_IN_CHILD(shrink_stays)
{
    char *p = do_malloc(30000);
    char *q = do_malloc(1 * MiB);
    p[1999] = q[1999] = 7;
    limit_address_space(0);
    fill(1 * MiB);
    fill(2000);
    errno = 0;
    p = do_realloc(p, 2000);
    q = do_realloc(q, 2000);
    CHECK(p != NULL && p[1999] == 7, "a block of 30000 bytes did not shrink without memory");
    CHECK(q != NULL && q[1999] == 7, "a block of 1 MiB did not shrink without memory");
    CHECK(errno == 0, "errno was %d after a realloc that succeeded", errno);
}

/* Of a long block of calloc that is needed again and again, only what is touched is resident. */
TEST_IN_CHILD(calloc_stays_sparse)
{
    const size_t n = 96 * MiB;
    for (unsigned round = 0; round < 12; round++) {
        size_t before = statm_read().resident;
        char *p = NEED("calloc", do_calloc(n, 1));
        size_t after = statm_read().resident;
        CHECK(after < before + n / 2, "round %u: %zu MiB are resident that nobody touched", round,
              (after - before) / MiB);
        for (size_t at = 0; at < n; at += n / 16) {
            CHECK_BYTES(p + at, 0, 64);
            memset(p + at, 0x5a, 64);
        }
        do_free(p);
    }
}

/* ---- a mapping that moves while others map ---- */

static volatile bool stop;

static void *map_and_unmap(void *unused)
{
    (void)unused;
    void *blocks[8] = {0};
    for (unsigned i = 0; !stop; i++) {
        do_free(blocks[i % 8]);
        blocks[i % 8] = do_malloc(65 * MiB);
    }
    for (unsigned i = 0; i < 8; i++)
        do_free(blocks[i]);
    return NULL;
}

TEST(moving_mappings)
{
    pthread_t others[2];
    threads_start(others, 2, map_and_unmap);
    for (int i = 0; i < 20000; i++) {
        char *p = do_malloc(65 * MiB);
        void *behind = do_malloc(65 * MiB);
        p[0] = 1;
        p = do_realloc(p, 70 * MiB);
        CHECK(p[0] == 1, "content was lost");
        do_free(p);
        do_free(behind);
    }
    stop = true;
    threads_join(others, 2);
}

/* ---- fork in a signal handler ---- */

static volatile sig_atomic_t forks;

static void fork_in_handler(int unused)
{
    (void)unused;
    pid_t child = fork();
    if (child == 0)
        _exit(0);
    if (child > 0)
        waitpid(child, NULL, 0);
    forks++;
}

/* While there is one thread. */
TEST_FIRST(handler_forks)
{
    struct sigaction action = {.sa_handler = fork_in_handler, .sa_flags = SA_RESTART};
    struct itimerval every = {{0, 2000}, {0, 2000}}, never = {{0, 0}, {0, 0}};
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &every, NULL);
    void *blocks[64] = {0};
    for (unsigned i = 0; forks < 200; i++) {
        do_free(blocks[i % 64]);
        blocks[i % 64] = do_malloc(300000 + i % 7 * 70000);
    }
    setitimer(ITIMER_REAL, &never, NULL);
    for (unsigned i = 0; i < 64; i++)
        do_free(blocks[i]);
    CHECK(forks >= 200, "expected 200 forks, found %d", (int)forks);
}

int main(void) { return tests_main("reclaim"); }

/* A clock that stands still, runs backwards, jumps, or is refused, as in a sandbox or on a machine
 * that was suspended. Only the moment at which memory goes back may depend on it. This clock is
 * the kernel's for the library, and replaces libc's for everybody else. */
#include "trap.h"

#include <stdio.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "suite/kernel_clock.h"

enum fault { FLAT, BACKWARDS, JUMPS, REFUSED, FAULTS };
static const char *const names[] = {"flat", "backwards", "jumps", "refused"};

static enum fault fault;
static atomic_ulong calls;

int clock_gettime(clockid_t clock, struct timespec *now)
{
    (void)clock;
    long call = (long)atomic_fetch_add(&calls, 1);
    switch (fault) {
    case FLAT:
        *now = (struct timespec){1000, 5};
        return 0;
    case BACKWARDS:
        *now = (struct timespec){1000000 - call, 999999999 - call};
        return 0;
    case JUMPS:
        *now = (struct timespec){call % 3 * 1000000000, 7};
        return 0;
    default:
        errno = EPERM;
        return -1;
    }
}

int kernel_clock(clockid_t clock, struct timespec *now)
{
    int before = errno;
    int failed = clock_gettime(clock, now);
    errno = before;
    return failed;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
    (void)zone;
    struct timespec time;
    if (clock_gettime(CLOCK_REALTIME, &time) != 0)
        return -1;
    *now = (struct timeval){time.tv_sec, time.tv_nsec / 1000};
    return 0;
}

static void *work(void *seat)
{
    seat_work(seat, 5000);
    return NULL;
}

/* Blocks of all sizes, together far beyond what is kept for reuse; then all free. And others, of so
 * many bytes that memory goes back and is needed again. */
static void take_much_and_free_it(void)
{
    enum { N = 2500 };
    static void *blocks[N];
    for (int round = 0; round < 2; round++) {
        size_t n = round == 0 ? 100000 : 30000;
        for (unsigned i = 0; i < N; i++) {
            blocks[i] = NEED("malloc", do_malloc(n + i));
            memset(blocks[i], round, n);
        }
        for (unsigned i = 0; i < N; i++) {
            errno = 4321;
            do_free(blocks[i]);
            if (errno != 4321)
                CHECK_ERROR("errno after free", errno, 4321);
        }
        for (unsigned i = 0; i < N; i += 40) {
            blocks[i] = NEED("calloc", do_calloc(1, n));
            CHECK_BYTES(blocks[i], 0, n);
        }
        for (unsigned i = 0; i < N; i += 40)
            do_free(blocks[i]);
    }
    for (unsigned i = 0; i < 12000; i++)
        do_free(NEED("malloc", do_malloc(4 << 20)));
}

static void work_by_wrong_time(void)
{
    struct crew crew;
    pthread_t threads[4];
    crew_make(&crew, 4, 200);
    for (unsigned i = 0; i < crew.n; i++)
        threads[i] = started(work, &crew.seats[i]);
    threads_join(threads, crew.n);
    crew_clear(&crew);
    take_much_and_free_it();
    use_the_heap(1);
    /* 250 MiB were in use. */
    CHECK(rss_mib() < 60, "resident when all is freed, clock %s: expected under 60 MiB, found %zu",
          names[fault], rss_mib());
    printf("clock: %s: asked %lu times, %zu MiB resident at the end\n", names[fault],
           (unsigned long)calls, rss_mib());
    fflush(stdout);
}

TEST(wrong_clocks)
{
    for (fault = FLAT; fault < FAULTS; fault++)
        in_child(work_by_wrong_time);
}

int main(void) { return tests_main("clock"); }

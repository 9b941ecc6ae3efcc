/* Threads that lose the processor while they hold a lock of the allocator: many on one processor,
 * with every priority, the lowest of which run only when no other thread can; and a waiting thread
 * with real-time priority, which keeps the holder from running unless it sleeps. */
#include "trap.h"

#include <sched.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 48, BLOCKS = 400 };

static const char *const kinds[] = {"normal", "nice", "idle"};
static unsigned finished[3];

/* More blocks than a cache holds at first, so every round takes the slow path, and its locks. */
static void through_the_slow_path(unsigned rounds, unsigned seed)
{
    void *blocks[BLOCKS];
    for (unsigned round = 0; round < rounds; round++) {
        size_t n = 16 + (round + seed) % 7 * 300;
        for (unsigned i = 0; i < BLOCKS; i++) {
            blocks[i] = NEED("malloc", do_malloc(n));
            *(unsigned *)blocks[i] = seed + i;
        }
        for (unsigned i = 0; i < BLOCKS; i++) {
            if (*(unsigned *)blocks[i] != seed + i)
                CHECK(false, "a block of %zu bytes changed", n);
            do_free(blocks[i]);
        }
    }
}

static void *work_at_priority(void *number)
{
    unsigned kind = (unsigned)(uintptr_t)number % 3;
    const struct sched_param none = {0};
    if (kind == 1)
        setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), 19);
    if (kind == 2 && sched_setscheduler(0, SCHED_IDLE, &none) != 0)
        CHECK(false, "SCHED_IDLE: %s", error_name(errno));
    through_the_slow_path(60, (unsigned)(uintptr_t)number);
    __atomic_add_fetch(&finished[kind], 1, __ATOMIC_RELAXED);
    return NULL;
}

TEST(all_priorities_on_one_processor)
{
    in_threads(THREADS, work_at_priority);
    for (unsigned i = 0; i < 3; i++)
        CHECK(finished[i] == THREADS / 3, "threads that finished, %s: expected %d, found %u",
              kinds[i], THREADS / 3, finished[i]);
}

static volatile bool stop;

static void *work_until_stopped(void *seed)
{
    while (!stop)
        through_the_slow_path(1, (unsigned)(uintptr_t)seed);
    return NULL;
}

/* Of the processor: how long a holder of the lock waits for its turn is other programs' doing. */
static double seconds_of_round(unsigned seed)
{
    struct timespec start, end;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &start);
    through_the_slow_path(1, seed);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
    return (double)(end.tv_sec - start.tv_sec) + (double)(end.tv_nsec - start.tv_nsec) / 1e9;
}

/* It wakes at times that fall anywhere in the work of the others. If it spun for a lock, it would
 * do so until the kernel takes the processor from it, which is most of a second. */
static void *work_in_real_time(void *unused)
{
    const struct sched_param lowest = {.sched_priority = 1};
    struct timespec pause = {0, 30000};
    if (sched_setscheduler(0, SCHED_FIFO, &lowest) != 0) {
        printf("preempted: SCHED_FIFO: %s: not tested\n", error_name(errno));
        return unused;
    }
    double longest = 0;
    for (unsigned i = 0; i < 3000; i++) {
        double seconds = seconds_of_round(i);
        longest = seconds > longest ? seconds : longest;
        nanosleep(&pause, NULL);
    }
    CHECK(longest < 0.5,
          "processor time of each of 3000 rounds in real time: expected under 0.5 s, found %.3f",
          longest);
    printf("preempted: most processor time of 3000 rounds: %.3f ms\n", longest * 1000);
    return unused;
}

TEST(real_time_before_everybody)
{
    pthread_t threads[4];
    threads_start(threads, 4, work_until_stopped);
    in_thread(work_in_real_time, NULL);
    stop = true;
    threads_join(threads, 4);
}

static void stay_on_one_processor(void)
{
    cpu_set_t allowed, one;
    int processor = 0;
    CPU_ZERO(&one);
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0)
        fail("preempted: sched_getaffinity: %s", error_name(errno));
    while (!CPU_ISSET(processor, &allowed))
        processor++;
    CPU_SET(processor, &one);
    if (sched_setaffinity(0, sizeof one, &one) != 0)
        fail("preempted: sched_setaffinity: %s", error_name(errno));
}

int main(int argc, char **argv)
{
    /* Anew, so that the allocator counts one processor and has one of everything. */
    if (argc == 1) {
        stay_on_one_processor();
        execl("/proc/self/exe", argv[0], "--on-one", NULL);
        fail("preempted: exec: %s", error_name(errno));
    }
    return tests_main("preempted");
}

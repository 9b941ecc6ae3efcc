/* Prints how many KiB of freed blocks stay resident, at once and after other blocks were freed, and
 * how many milliseconds were between the two: `options_kept huge|slices MIB`. Freed are a block of
 * 64 MiB or 32 of 1 MiB, then MIB of others, which can't lie where those did.
 *
 * `options_kept huge|slices rests`: the program rests between the others, again and again.
 *
 * `options_kept huge|slices first`: the first call of the process is mallopt, by which all stays.
 *
 * `options_kept huge|slices turns`: 240 MiB come and go again and again, beside a second thread, so
 * that hakmem learns to keep more; prints the most KiB that was resident after a turn's last free.
 */
#include "../stress/statm.h"

#include <hakmem/hakmem.h>

#include <malloc.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define KiB ((size_t)1 << 10)
#define MiB ((size_t)1 << 20)
#define OTHERS (200 * MiB) /* between rests */

static void *get(size_t n)
{
    void *p = hakmem_malloc(n);
    if (p == NULL)
        exit(1);
    return p;
}

static void touch_and_free(size_t count, size_t n)
{
    void *blocks[32];
    for (size_t i = 0; i < count; i++)
        blocks[i] = memset(get(n), 1, n);
    for (size_t i = 0; i < count; i++)
        hakmem_free(blocks[i]);
}

static void print_growth(size_t before)
{
    size_t now = statm_read().resident / KiB;
    printf("%zu\n", now > before ? now - before : 0);
}

/* ---- turns ---- */

static pthread_barrier_t barrier;

static void *idle(void *unused)
{
    hakmem_free(get(1));
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    return unused;
}

static void work_in_turns(size_t size)
{
    enum { ALL = 240, TURNS = 10 };
    static void *blocks[ALL];
    size_t count = ALL * MiB / size, before = statm_read().resident / KiB, most = 0;
    for (int turn = 0; turn < TURNS; turn++) {
        for (size_t i = 0; i < count; i++)
            blocks[i] = memset(get(size), 1, size);
        for (size_t i = 0; i < count; i++)
            hakmem_free(blocks[i]);
        size_t now = statm_read().resident / KiB;
        if (now > before + most)
            most = now - before;
    }
    printf("%zu\n", most);
}

static void turns_beside_a_thread(size_t size)
{
    pthread_t thread;
    pthread_barrier_init(&barrier, NULL, 2);
    if (pthread_create(&thread, NULL, idle, NULL) != 0)
        exit(1);
    pthread_barrier_wait(&barrier);
    hakmem_free(get(1));
    work_in_turns(size);
    pthread_barrier_wait(&barrier);
    pthread_join(thread, NULL);
}

static void free_others(bool huge, size_t bytes)
{
    size_t other = huge ? MiB : 4 * MiB;
    for (size_t freed = 0; freed < bytes; freed += other)
        hakmem_free(get(other));
}

/* What lies in the thread's stacks of large blocks first has to be found idle there, then as free
 * slices, each in a time in which nobody wanted it. */
static void rest_often(bool huge)
{
    for (int i = 0; i < 4; i++) {
        usleep(200000);
        free_others(huge, OTHERS);
    }
}

static long milliseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    bool huge = strcmp(argv[1], "huge") == 0;
    if (strcmp(argv[2], "turns") == 0) {
        turns_beside_a_thread(huge ? 4 * MiB : MiB);
        return 0;
    }
    if (strcmp(argv[2], "first") == 0 && hakmem_mallopt(M_TRIM_THRESHOLD, -1) != 1)
        return 1;
    hakmem_free(get(1));
    size_t before = statm_read().resident / KiB;
    touch_and_free(huge ? 1 : 32, huge ? 64 * MiB : MiB);
    long began = milliseconds();
    print_growth(before);
    if (strcmp(argv[2], "rests") == 0)
        rest_often(huge);
    else
        free_others(huge, strtoul(argv[2], NULL, 10) * MiB);
    print_growth(before);
    printf("%ld\n", milliseconds() - began);
    return 0;
}

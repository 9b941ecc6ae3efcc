/* A heap that comes and goes whole: once it has done so a few times its memory stays for the next
 * time, and where there are threads it goes back when the program rests, whatever the blocks are.
 *
 *   swings SIZE COUNT alone      COUNT blocks of SIZE bytes, in a process of one thread
 *   swings SIZE COUNT threads    in one of two, of which one sleeps
 *   swings SIZE COUNT once       the same, one swing
 */
#include "support.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define SWINGS_TO_LEARN 12
#define SWINGS_TO_COUNT 8

static size_t page;

static size_t faults(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (size_t)usage.ru_minflt;
}

static size_t resident(void)
{
    size_t all, here = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file == NULL || fscanf(file, "%zu %zu", &all, &here) != 2)
        fail("no /proc/self/statm");
    fclose(file);
    return here * page;
}

static void swing(char **blocks, size_t count, size_t size)
{
    for (size_t i = 0; i < count; i++) {
        if ((blocks[i] = malloc(size)) == NULL)
            fail("no memory for block %zu", i);
        for (size_t at = 0; at < size; at += page)
            blocks[i][at] = 1;
    }
    for (size_t i = 0; i < count; i++)
        free(blocks[i]);
}

/* A thread that has used the heap, and sleeps. */
static void *sleep_on(void *unused)
{
    (void)unused;
    char *volatile block = malloc(100);
    free(block);
    for (;;)
        pause();
    return NULL;
}

static void expect_kept(char **blocks, size_t count, size_t size)
{
    for (int i = 0; i < SWINGS_TO_LEARN; i++)
        swing(blocks, count, size);
    size_t before = faults();
    for (int i = 0; i < SWINGS_TO_COUNT; i++)
        swing(blocks, count, size);
    size_t pages = size * count / page;
    size_t each = (faults() - before) / SWINGS_TO_COUNT;
    printf("faults of a swing: %zu of %zu pages\n", each, pages);
    if (each > pages / 20)
        fail("its memory did not stay");
}

static void expect_given_back(size_t most)
{
    size_t here = resident();
    for (int i = 0; i < 300 && here > most; i++, here = resident())
        nanosleep(&(struct timespec){0, 100000000}, NULL);
    printf("resident after the rest: %zu of %zu KiB at most\n", here / 1024, most / 1024);
    if (here > most)
        fail("its memory did not go back");
}

int main(int argc, char **argv)
{
    if (argc != 4)
        fail("usage: swings SIZE COUNT alone|threads|once");
    bool alone = strcmp(argv[3], "alone") == 0, once = strcmp(argv[3], "once") == 0;
    pthread_t sleeper;
    if (!alone && pthread_create(&sleeper, NULL, sleep_on, NULL) != 0)
        fail("no thread");
    page = (size_t)sysconf(_SC_PAGESIZE);
    size_t size = strtoul(argv[1], NULL, 10), count = strtoul(argv[2], NULL, 10);
    char **blocks = calloc(count, sizeof *blocks);
    if (once)
        swing(blocks, count, size);
    else
        expect_kept(blocks, count, size);
    if (!alone)
        expect_given_back(size * count / 10);
    free(blocks);
    return 0;
}

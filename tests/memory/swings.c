/* A heap that comes and goes whole: once it has done so a few times its memory stays for the next
 * time, and where there are threads it goes back when the program rests, whatever the blocks are.
 *
 *   swings SIZE COUNT alone      COUNT blocks of SIZE bytes, in a process of one thread
 *   swings SIZE COUNT threads    in one of two threads, of which one sleeps
 *   swings SIZE COUNT once       the same, a swing and a rest, and another
 */
#include "statm.h"
#include "support.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define SWINGS_TO_LEARN 12
#define SWINGS_TO_COUNT 8
#define TRIES 20

static size_t page;

static size_t faults(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (size_t)usage.ru_minflt;
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

static size_t faults_of_a_swing(char **blocks, size_t count, size_t size)
{
    size_t before = faults();
    for (int i = 0; i < SWINGS_TO_COUNT; i++)
        swing(blocks, count, size);
    return (faults() - before) / SWINGS_TO_COUNT;
}

/* Tries again, since on a busy machine a swing may take so long that memory goes back within it. */
static void expect_kept(char **blocks, size_t count, size_t size)
{
    size_t pages = size * count / page, each = pages;
    for (int i = 0; i < SWINGS_TO_LEARN; i++)
        swing(blocks, count, size);
    for (int i = 0; i < TRIES && each > pages / 20; i++)
        each = faults_of_a_swing(blocks, count, size);
    if (each > pages / 20)
        fail("faults of a swing: %zu of %zu pages: its memory did not stay", each, pages);
}

static void expect_given_back(size_t most)
{
    size_t here = statm_read().resident;
    for (int i = 0; i < 1200 && here > most; i++, here = statm_read().resident)
        nanosleep(&(struct timespec){0, 100000000}, NULL);
    if (here > most)
        fail("resident after the rest: %zu KiB, expected %zu at most", here / 1024, most / 1024);
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
    if (!once)
        expect_kept(blocks, count, size);
    /* Twice: what gives it back has dozed off in between. */
    for (int i = 0; i < 2 && !alone; i++) {
        if (i > 0)
            nanosleep(&(struct timespec){3, 0}, NULL);
        swing(blocks, count, size);
        expect_given_back(size * count / 10);
    }
    free(blocks);
    return 0;
}

/* Large blocks that grow step by step to 0.1 to 20 MiB, many at once, and are all freed at the end:
 * the same calls in each of 16 rounds. Once the first round is over, none needs more memory than
 * that one did.
 *
 *   grown ends     the first and the last byte of a block are written after each step
 *   grown pages    and every page
 *
 * It prints the most that was resident in the first round and in a later one, and fails where that
 * is more than 1.15 of the first. */
#include "statm.h"
#include "support.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDS 16
#define BLOCKS 40
#define LEAST ((size_t)100 << 10)
#define MOST (20 * MiB)
#define PERCENT_MOST 115

static bool every_page;

static void grow(char **block, size_t before, size_t after)
{
    char *p = realloc(*block, after);
    if (p == NULL)
        fail("no memory for a block of %zu bytes", after);
    if (before != 0 && (p[0] != 1 || p[before - 1] != 1))
        fail("a block of %zu bytes has lost its content", before);
    for (size_t at = before; every_page && at < after; at += 4096)
        p[at] = 1;
    p[0] = p[after - 1] = 1;
    *block = p;
}

/* The most bytes that were resident in it. */
static size_t round_peak(void)
{
    struct randomness random = {1};
    char *blocks[BLOCKS] = {NULL};
    size_t peak = 0;
    for (int i = 0; i < BLOCKS; i++) {
        size_t goal = LEAST + random_next(&random) % (MOST - LEAST);
        for (size_t size = 0; size < goal;) {
            size_t next = size == 0 ? LEAST : size + size / 8 + random_next(&random) % (64 * KiB);
            if (next > goal)
                next = goal;
            grow(&blocks[i], size, next);
            size = next;
        }
        size_t resident = statm_read().resident;
        if (resident > peak)
            peak = resident;
    }
    for (int i = 0; i < BLOCKS; i++)
        free(blocks[i]);
    return peak;
}

int main(int argc, char **argv)
{
    every_page = argc == 2 && strcmp(argv[1], "pages") == 0;
    if (!every_page && (argc != 2 || strcmp(argv[1], "ends") != 0))
        fail("usage: grown ends|pages");
    show_malloc_in_force("grown", "libhakmem");
    size_t first = round_peak(), most = 0;
    for (int i = 1; i < ROUNDS; i++) {
        size_t peak = round_peak();
        if (peak > most)
            most = peak;
    }
    printf("first round: %zu KiB, most later: %zu KiB\n", first / KiB, most / KiB);
    if (most <= first / 100 * PERCENT_MOST)
        return 0;
    printf("grown: a later round has %zu%% of the first round's peak: expected at most %d%%\n",
           most * 100 / first, PERCENT_MOST);
    return 1;
}

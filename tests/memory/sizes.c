/* A table of blocks, of which random ones are replaced by blocks of another size, and later of yet
 * another, as the values of a service whose work changes. Most slabs of the sizes before keep some
 * blocks, so their free places serve nobody; their free pages can go back.
 *
 * It prints the most that was in blocks and the most that was resident, both at once, and fails
 * where that is more than 1.35 times as much. */
#include "statm.h"
#include "support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLOCKS 30000
#define REPLACED 32000
#define LOOK 500
#define PERCENT_MOST 135

static struct {
    char *p;
    size_t size;
} table[BLOCKS];
static size_t live;

static void replace(size_t at, size_t size)
{
    free(table[at].p);
    live += size - table[at].size;
    table[at].size = size;
    table[at].p = malloc(size);
    if (table[at].p == NULL)
        fail("no memory for a block of %zu bytes", size);
    memset(table[at].p, 1, size);
}

int main(void)
{
    static const size_t sizes[] = {16, 3000, 64, 5000, 700, 200, 4000, 1500, 6000, 400};
    struct randomness random = {1};
    size_t most = 0, peak = 0;
    show_malloc_in_force("sizes", "libhakmem");
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (size_t done = 0; done < REPLACED; done++) {
            replace(random_next(&random) % BLOCKS, sizes[i]);
            if (live > most)
                most = live;
            if (done % LOOK == 0 && statm_read().resident > peak)
                peak = statm_read().resident;
        }
    printf("most in blocks: %zu KiB, most resident: %zu KiB\n", most / KiB, peak / KiB);
    if (peak <= most / 100 * PERCENT_MOST)
        return 0;
    printf("sizes: %zu%% of what was in blocks was resident: expected at most %d%%\n",
           peak * 100 / most, PERCENT_MOST);
    return 1;
}

/* Bursts of small blocks, all of them freed again each time: what stacks are learned from. Prints
 * how often the stacks were refilled: in the first burst, and in the last. */
#include <hakmem/hakmem.h>
#include <stdio.h>
#include <stdlib.h>

enum { BURSTS = 20, BLOCKS = 2000 };

static void *block[BLOCKS];

int main(void)
{
    size_t refills = 0, first = 0;
    for (int burst = 0; burst < BURSTS; burst++) {
        for (int i = 0; i < BLOCKS; i++)
            if ((block[i] = malloc(64)) == NULL)
                return 1;
        for (int i = BLOCKS; i > 0; i--)
            free(block[i - 1]);
        struct hakmem_stats stats;
        hakmem_stats(&stats, sizeof stats);
        if (burst == 0)
            first = stats.refills;
        if (burst == BURSTS - 1)
            printf("%zu %zu\n", first, stats.refills - refills);
        refills = stats.refills;
    }
    return 0;
}

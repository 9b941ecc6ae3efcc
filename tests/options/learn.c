/* Bursts of small blocks, all of them freed again each time: what stacks are learned from. Prints
 * how often the stacks were refilled: in the first burst, and in the last.
 *
 *   learn large   bursts of large blocks, from which it is learned what it costs that memory goes
 *                 back */
#include <hakmem/hakmem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BURSTS = 20, LARGE_BURSTS = 40, BLOCKS = 2000, LARGE_BLOCKS = 16, LARGE = 512 << 10 };

static void *block[BLOCKS];

static int large_bursts(void)
{
    for (int burst = 0; burst < LARGE_BURSTS; burst++) {
        for (int i = 0; i < LARGE_BLOCKS; i++) {
            if ((block[i] = malloc(LARGE)) == NULL)
                return 1;
            memset(block[i], 1, LARGE);
        }
        for (int i = 0; i < LARGE_BLOCKS; i++)
            free(block[i]);
        usleep(50000); /* pays for what went back in vain */
        for (int i = 0; i < LARGE_BLOCKS; i++)
            free(malloc(100 << 10));
    }
    return 0;
}

int main(int count, char **arguments)
{
    if (count > 1)
        return strcmp(arguments[1], "large") == 0 ? large_bursts() : 2;
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

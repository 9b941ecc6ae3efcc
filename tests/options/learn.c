/* Bursts of small blocks, all of them freed again each time: what stacks are learned from. Prints
 * how often the stacks were refilled: in the first burst, and in the last.
 *
 *   learn large   bursts of large blocks, from which it is learned how long free memory is kept
 *   learn mixed   large blocks of all sizes, of which a random one is replaced each time: how much
 *                 is worth keeping */
#include <hakmem/hakmem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    BURSTS = 20,
    LARGE_BURSTS = 8,
    BLOCKS = 2000,
    LARGE_BLOCKS = 64,
    LARGE = 512 << 10,
    MIXED = 40000
};

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
        usleep(100000); /* at rest, what is free goes back faster */
        for (int i = 0; i < LARGE_BLOCKS; i++)
            free(malloc(100 << 10));
    }
    return 0;
}

static int mixed(void)
{
    unsigned long long random = 88172645463325252;
    for (int i = 0; i < MIXED; i++) {
        random ^= random << 13, random ^= random >> 7, random ^= random << 17;
        void **slot = &block[random % LARGE_BLOCKS];
        size_t size = (64 << 10) + random / LARGE_BLOCKS % (960 << 10);
        free(*slot);
        *slot = random >> 63 ? NULL : malloc(size);
        if (*slot != NULL)
            memset(*slot, 1, size);
    }
    return 0;
}

int main(int count, char **arguments)
{
    if (count > 1)
        return strcmp(arguments[1], "large") == 0 ? large_bursts() : mixed();
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

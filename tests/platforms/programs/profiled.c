/* Keeps 10 blocks of 1 MiB, allocated by a function that a profiler must name, and prints whose
 * malloc it used. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hakmem/hakmem.h"

#pragma weak hakmem_stats

enum { BLOCKS = 10, SIZE = 1 << 20 };

static char *blocks[BLOCKS];

__attribute__((noinline)) void keep_ten_blocks(void)
{
    for (int i = 0; i < BLOCKS; i++) {
        blocks[i] = malloc(SIZE);
        if (blocks[i] == NULL)
            abort();
        memset(blocks[i], i, SIZE);
    }
}

static size_t in_hakmem(void)
{
    struct hakmem_stats stats = {0};
    if (hakmem_stats != NULL)
        hakmem_stats(&stats, sizeof stats);
    return stats.program;
}

int main(void)
{
    size_t before = in_hakmem();
    keep_ten_blocks();
    size_t after = in_hakmem();
    printf("malloc is %s\n", after - before >= (size_t)BLOCKS * SIZE ? "hakmem's" : "another's");
    return 0;
}

/* Allocations and frees for counting their instructions: plant_cost PATTERN BYTES BLOCKS. */
#include <stdlib.h>
#include <string.h>

#define BLOCKS 64

int main(int argc, char **argv)
{
    static void *blocks[BLOCKS];
    if (argc != 4)
        return 2;
    size_t bytes = strtoul(argv[2], NULL, 10);
    unsigned long count = strtoul(argv[3], NULL, 10);
    unsigned random = 1;
    for (unsigned long i = 0; i < count; i++) {
        unsigned at = 0;
        if (strcmp(argv[1], "batch") == 0) {
            at = i % BLOCKS;
            for (unsigned one = BLOCKS; at == 0 && one > 0; one--)
                free(blocks[one - 1]);
        } else if (strcmp(argv[1], "replace") == 0) {
            random = random * 1664525u + 1013904223u;
            at = random >> 26;
            free(blocks[at]);
        } else {
            free(blocks[0]);
        }
        blocks[at] = malloc(bytes);
    }
    return 0;
}

/* Allocates blocks and knows how much it asked for: blocks of all kinds, some of them freed, some
 * resized where they are. Each line on standard input makes more of them; the answer is a line, the
 * bytes requested of all blocks that are in use. The word "usable" is answered by what these
 * blocks take. */
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST 1000000
#define MORE 100000

static struct block {
    void *p;
    size_t size;
} blocks[MOST];
static size_t count;

static uint64_t random_next(void)
{
    static uint64_t state = 88172645463325252u;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

static size_t size_next(size_t i)
{
    if (i % 20000 == 19999)
        return 3000000 + random_next() % 3000000;
    if (i % 500 == 499)
        return 40000 + random_next() % 200000;
    return 1 + random_next() % (i % 3 == 0 ? 4000 : 200);
}

static void more(void)
{
    for (size_t i = 0; i < MORE && count < MOST; i++) {
        struct block *block = &blocks[count];
        block->size = size_next(i);
        block->p = malloc(block->size);
        /* Most of these stay where they are. */
        if (random_next() % 4 == 0) {
            size_t usable = malloc_usable_size(block->p);
            block->size = usable - random_next() % (usable / 4);
            block->p = realloc(block->p, block->size);
        }
        if (block->p == NULL)
            exit(3);
        if (random_next() % 3 == 0)
            free(block->p);
        else
            count++;
    }
}

int main(void)
{
    char word[32];
    printf("ready\n");
    fflush(stdout);
    while (fgets(word, sizeof word, stdin) != NULL) {
        size_t sum = 0;
        if (strcmp(word, "usable\n") != 0)
            more();
        for (size_t i = 0; i < count; i++)
            sum += strcmp(word, "usable\n") == 0 ? malloc_usable_size(blocks[i].p) : blocks[i].size;
        printf("%zu\n", sum);
        fflush(stdout);
    }
    return 0;
}

/* Allocates known amounts in functions of known names. Blocks are never touched, so that they need
   little memory. The comments "here:" mark the lines that a profile has to name. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK 1024
#define KEPT (256 * 1024)
#define LIBRARY (256 * 1024)
#define PASSING (64 * 1024)

void *library_keeps(size_t bytes);

static void *blocks[KEPT];

static inline __attribute__((always_inline)) void *inlined(size_t bytes)
{
    return malloc(bytes); /* here: inlined */
}

__attribute__((noinline)) static void leak(void)
{
    for (int i = 0; i < KEPT; i++)
        blocks[i] = inlined(BLOCK); /* here: leak */
}

__attribute__((noinline)) static void leak_in_library(void)
{
    for (int i = 0; i < LIBRARY; i++)
        blocks[i] = library_keeps(BLOCK); /* here: leak_in_library */
}

__attribute__((noinline)) static void pass(void)
{
    for (int i = 0; i < PASSING; i++)
        blocks[i] = malloc(BLOCK); /* here: pass */
    for (int i = 0; i < PASSING; i++)
        free(blocks[i]);
}

/* Does a bit of each at each line of input: for profiles of a running process. */
static void serve(void)
{
    char line[16];
    puts("ready");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin) != NULL) {
        if (strcmp(line, "leak\n") == 0)
            leak();
        pass();
        puts("0");
        fflush(stdout);
    }
}

int main(int count, char **words)
{
    if (count > 1 && strcmp(words[1], "serve") == 0) {
        serve();
        return 0;
    }
    pass();
    leak();
    leak_in_library();
    return 0;
}

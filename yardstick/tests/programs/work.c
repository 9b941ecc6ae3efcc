/* A program to compare allocators on: blocks that come and go, and an end of choice.
 *
 *   work TURNS [fail | hang | differ]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { SLOTS = 2000 };

int main(int argc, char **argv)
{
    static void *slots[SLOTS];
    const char *way = argc > 2 ? argv[2] : "";
    long turns = argc > 1 ? atol(argv[1]) : 1000;
    unsigned state = 1;
    unsigned long sum = 0;
    for (long i = 0; i < turns; i++) {
        state = state * 1664525u + 1013904223u;
        unsigned at = (state >> 8) % SLOTS;
        size_t size = 16 + (state >> 16) % 2000;
        free(slots[at]);
        slots[at] = malloc(size);
        if (!slots[at])
            return 9;
        memset(slots[at], 1, size < 64 ? size : 64);
        sum += size;
    }
    if (strcmp(way, "hang") == 0)
        pause();
    if (strcmp(way, "differ") == 0) {
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        sum = (unsigned long)now.tv_nsec;
    }
    printf("%lu bytes\n", sum);
    if (strcmp(way, "fail") == 0) {
        fprintf(stderr, "work: it was told to fail\n");
        return 3;
    }
    return 0;
}

/* Sets marks, and says its number when it is asked. It allocates and frees while it waits, so that
 * it obeys orders. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "hakmem/hakmem.h"

#define BLOCKS 10000
#define BYTES 1000

static void *kept[BLOCKS];

int main(void)
{
    for (int i = 0; i < BLOCKS; i++)
        kept[i] = malloc(BYTES);
    hakmem_mark("loaded");
    for (int i = 0; i < BLOCKS / 2; i++)
        free(kept[i]);
    hakmem_mark("halved");
    hakmem_mark("loaded");
    hakmem_mark("a name of more than so many bytes, which is cut off");
    hakmem_mark("");
    hakmem_mark(NULL);
    for (int i = 0; i < 100; i++) {
        char name[16];
        snprintf(name, sizeof name, "one of many %d", i);
        hakmem_mark(name);
    }
    puts("ready");
    fflush(stdout);
    char line[16];
    for (struct pollfd input = {.fd = 0, .events = POLLIN};;) {
        for (int i = 0; i < 100; i++)
            free(malloc(BYTES));
        if (poll(&input, 1, 1) <= 0)
            continue;
        if (read(0, line, sizeof line) <= 0)
            return 0;
        printf("%d\n", (int)getpid());
        fflush(stdout);
    }
}

/* Allocates what test_rounding.py knows of: `rounding nothing|once|freed|twice [FUNCTION]`, 100,000
 * blocks of 100 bytes; freed five times over; or once more in a child. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define BLOCKS 100000

static void *blocks[2 * BLOCKS];

static void take(void *(*function)(size_t), size_t from)
{
    for (size_t i = from; i < from + BLOCKS; i++)
        blocks[i] = function(100);
}

int main(int count, char **words)
{
    const char *how = count > 1 ? words[1] : "";
    void *(*function)(size_t);
    *(void **)&function = dlsym(RTLD_DEFAULT, count > 2 ? words[2] : "malloc");
    if (function == NULL) {
        fprintf(stderr, "there is no %s\n", words[2]);
        return 1;
    }
    free(function(1)); /* there is a record */
    if (strcmp(how, "nothing") != 0)
        take(function, 0);
    if (strcmp(how, "freed") == 0) {
        for (int round = 0; round < 5; round++) {
            for (size_t i = 0; i < BLOCKS; i++)
                free(blocks[i]);
            if (round < 4)
                take(function, 0);
        }
    }
    if (strcmp(how, "twice") == 0) {
        if (fork() == 0) {
            take(function, BLOCKS);
            _exit(0);
        }
        wait(NULL);
    }
    return 0;
}

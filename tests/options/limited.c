/* Takes blocks of SIZE bytes until there is no more memory, and frees them, TIMES times:
 * `options_limited SIZE TIMES`. Prints how many MiB it got each time, and the name of the error. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIB ((size_t)1 << 20)
#define MOST (256 * MIB)

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    size_t size = strtoul(argv[1], NULL, 10);
    for (long left = strtol(argv[2], NULL, 10); left > 0; left--) {
        void **blocks = NULL;
        size_t got = 0;
        for (; got < MOST; got += size) {
            void **block = malloc(size);
            if (block == NULL)
                break;
            memset((void *)block, 1, size);
            *block = (void *)blocks;
            blocks = block;
        }
        const char *error = got >= MOST ? "none" : errno == ENOMEM ? "ENOMEM" : "other";
        while (blocks != NULL) {
            void **next = (void **)*blocks;
            free((void *)blocks);
            blocks = next;
        }
        printf("%zu %s\n", got / MIB, error);
    }
    return 0;
}

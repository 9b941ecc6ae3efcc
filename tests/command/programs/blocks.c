/* Allocates, and prints that it did. Then it ends, or with an argument waits for the end of its
 * input. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int count, char **arguments)
{
    (void)arguments;
    char *volatile block = calloc(10, 10);
    block = realloc(block, 1000);
    free(block);
    block = malloc(100);
    puts("ready");
    fflush(stdout);
    char c;
    while (count > 1 && read(0, &c, 1) > 0)
        ;
    free(block);
    return 0;
}

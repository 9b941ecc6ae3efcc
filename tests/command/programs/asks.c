/* Gets a block from mimalloc by mimalloc's own name, then waits for the end of its input. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

void *mi_malloc(size_t n);

int main(void)
{
    char *volatile ours = malloc(100);
    char *volatile theirs = mi_malloc(100);
    printf("%s\n", ours != NULL && theirs != NULL ? "ready" : "no memory");
    fflush(stdout);
    char c;
    while (read(0, &c, 1) > 0)
        ;
    free(ours);
    return 0;
}

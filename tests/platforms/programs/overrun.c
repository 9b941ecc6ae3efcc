/* Writes one byte past the end of a block, for tools that find this. */
#include <stdlib.h>

int main(void)
{
    size_t n = 40;
    volatile char *p = malloc(n);
    for (size_t i = 0; i <= n; i++)
        p[i] = 1;
    char last = p[n];
    free((void *)p);
    return last - 1;
}

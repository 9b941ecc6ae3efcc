/* One malloc and one free, of any allocator. */
#include <stdlib.h>

int main(void)
{
    void *p = malloc(100);
    free(p);
    return p == NULL;
}

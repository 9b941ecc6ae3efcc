/* One malloc and one free, whosever they are. */
#include <stdlib.h>

int main(void)
{
    void *p = malloc(100);
    free(p);
    return p == NULL;
}

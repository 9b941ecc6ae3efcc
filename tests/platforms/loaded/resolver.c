/* A function whose address comes from a resolver (IFUNC), which allocates, and runs while the
 * loader still relocates. It is a library, or with MAIN a program. */
#include <stdlib.h>
#include <string.h>

static char *made;

static size_t answer(void) { return strlen(made); }

static size_t (*resolve(void))(void)
{
    made = malloc(100);
    memset(made, 'x', 99);
    made[99] = 0;
    free(malloc(1));
    return answer;
}

size_t resolved(void) __attribute__((ifunc("resolve")));

#ifdef MAIN
int main(void)
{
    if (resolved() != 99)
        return 1;
    free(made);
    return 0;
}
#else
size_t call_resolved(void);
size_t call_resolved(void) { return resolved(); }
#endif

/* hakmem under hakmem_ names, in a program whose malloc is another one. */
#include "proof.h"

static void *with_hakmem(size_t n) { return hakmem_malloc(n); }

int main(void)
{
    char *theirs = malloc(100);
    char *ours = hakmem_malloc(100);
    if (theirs == NULL || ours == NULL)
        return 2;
    free(theirs);
    hakmem_free(ours);
    return expect("malloc", counted_of(malloc, free), 0, 0) ||
           expect("hakmem_malloc", counted_of(with_hakmem, hakmem_free), FOUR_MIB, 2 * FOUR_MIB);
}

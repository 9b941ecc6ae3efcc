/* How many superslabs are mapped after a warm-up, and after as many operations again. About 2.1 MiB
 * are live then, in blocks of every class up to 1 KiB. */
#include "back/superslabs.h"
#include "work.h"

#include <stdio.h>

#include "hakmem/hakmem.h"

enum { MOST = 4 };

int main(void)
{
    static struct work work = {
        .take = hakmem_malloc, .give = hakmem_free, .slots = 8192, .min = 16, .max = 1024};
    work_start(&work);
    for (int round = 0; round < 2; round++) {
        if (!work_operate(&work)) {
            fputs("no memory\n", stderr);
            return 1;
        }
        size_t mapped = superslabs_mapped();
        printf("%d operations: %zu superslabs of %d MiB mapped, at most %d are allowed\n",
               (round + 1) * WORK_OPERATIONS, mapped, (int)(SUPERSLAB / MiB), MOST);
        if (mapped == 0 || mapped > MOST)
            return 1;
    }
    return 0;
}

/* A program whose first call finds more thread keys than libc has preallocated values for: setting
 * the allocator's key makes libc allocate in the middle of that call (trap 35). Nothing may have
 * allocated before, so this is a separate program from trap_threads. */
#include "trap.h"

enum { KEYS = 40 };

int main(void)
{
    pthread_key_t keys[KEYS];
    unsigned made = 0;
    while (made < KEYS && pthread_key_create(&keys[made], NULL) == 0)
        made++;
    void *first = do_malloc(10);
    check_start("keys");
    watchdog(300);
    CHECK_SIZE("keys made before the first call", made, KEYS);
    NEED("the first malloc", first);
    for (unsigned i = 0; i < KEYS; i++)
        CHECK_ERROR("pthread_setspecific", pthread_setspecific(keys[i], first), 0);
    use_the_heap(1);
    do_free(first);
    return check_end();
}

/* The start of the process's heap, by several existing threads at once, and by each of the
 * functions. Each case is a separate child, whose parent never calls the allocator (trap 23). It
 * uses hakmem_ names, because otherwise libc's own calls would come first. */
#include "trap.h"

#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 8, CHILDREN = 60 };

static pthread_barrier_t together;
static unsigned child_number;

static void first_call(unsigned which)
{
    void *p = NULL;
    switch (which % 8) {
    case 0:
        p = NEED("malloc", do_malloc(100));
        break;
    case 1:
        p = NEED("calloc", do_calloc(10, 10));
        break;
    case 2:
        p = NEED("realloc", do_realloc(NULL, 100));
        break;
    case 3:
        p = NEED("memalign", do_memalign(4096, 100));
        CHECK_ALIGNED(p, 4096);
        break;
    case 4:
        do_free(NULL);
        break;
    case 5:
        CHECK_SIZE("usable size of NULL", do_usable_size(NULL), 0);
        break;
    case 6:
        p = NEED("malloc", do_malloc(10 * MiB));
        break;
    default:
        CHECK_ERROR("posix_memalign", do_posix_memalign(&p, 65536, 300000), 0);
        break;
    }
    if (p != NULL)
        memset(p, 1, 100);
    do_free(p);
}

static void *start_together(void *number)
{
    pthread_barrier_wait(&together);
    first_call((unsigned)(uintptr_t)number + child_number);
    use_the_heap((unsigned)(uintptr_t)number);
    return NULL;
}

static void after_the_start(void) { use_the_heap(9); }

static void by_many_threads(void)
{
    pthread_barrier_init(&together, NULL, THREADS);
    in_threads(THREADS, start_together);
    in_child(after_the_start); /* the handlers of fork are in place, once */
}

static void by_one_function(void)
{
    first_call(child_number);
    use_the_heap(1);
}

TEST(threads_that_race)
{
    for (child_number = 0; child_number < CHILDREN; child_number++)
        in_child(by_many_threads);
}

TEST(each_function)
{
    for (child_number = 0; child_number < 8; child_number++)
        in_child(by_one_function);
}

int main(void) { return tests_main("start"); }

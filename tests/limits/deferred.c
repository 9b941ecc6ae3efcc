/* Blocks that a thread frees while another forks, and while the kernel has no memory for notes of
 * them: they wait linked through their own first words. Afterwards they are as free as others, also
 * in a hardened heap, where a free block that is not zero is a heap error. */
#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hakmem/hakmem.h"
#include "os_fake.h"
#include "work.h"

#define BLOCKS 20000 /* more than a thread keeps of them */
#define BYTES 500

static void *blocks[BLOCKS];
static pthread_barrier_t all_made, heap_is_held, all_freed;

static void make(unsigned first)
{
    for (unsigned i = first; i < BLOCKS; i += 2) {
        blocks[i] = hakmem_malloc(BYTES);
        if (blocks[i] == NULL)
            work_fail("malloc(%d): expected a block, found NULL", BYTES);
        memset(blocks[i], (int)i | 1, BYTES);
    }
}

/* Every second: so their slabs stay. */
static void give(unsigned first)
{
    for (unsigned i = first; i < BLOCKS; i += 2)
        hakmem_free(blocks[i]);
}

/* It is registered before the allocator's handlers, so it runs after them. */
static void before_fork(void)
{
    os_fake.refused_error = 12; /* ENOMEM */
    os_fake.refused = FAKE_BIT(mmap);
    pthread_barrier_wait(&heap_is_held);
    pthread_barrier_wait(&all_freed);
    os_fake.refused = 0;
}

__attribute__((constructor(101))) static void register_handler(void)
{
    if (pthread_atfork(before_fork, NULL, NULL) != 0)
        work_fail("the test itself: no handler");
}

static void *free_meanwhile(void *unused)
{
    (void)unused;
    make(0);
    make(1);
    pthread_barrier_wait(&all_made);
    pthread_barrier_wait(&heap_is_held);
    give(0);
    pthread_barrier_wait(&all_freed);
    return NULL;
}

int main(void)
{
    pthread_t thread;
    pthread_barrier_init(&all_made, NULL, 2);
    pthread_barrier_init(&heap_is_held, NULL, 2);
    pthread_barrier_init(&all_freed, NULL, 2);
    alarm(60);
    if (pthread_create(&thread, NULL, free_meanwhile, NULL) != 0)
        work_fail("the test itself: no thread");
    hakmem_free(hakmem_malloc(1));
    pthread_barrier_wait(&all_made);
    pid_t child = fork();
    if (child == 0)
        _exit(0);
    int status = -1;
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0)
        work_fail("a child of fork: expected its end with 0, found status %d", status);
    pthread_join(thread, NULL);
    if (os_fake.failed == 0)
        work_fail("memory for notes: expected that the kernel refuses some, found no call");
    make(0);
    give(0);
    give(1);
    long broken = hakmem_check();
    if (broken != 0)
        work_fail("hakmem_check: expected 0, found %ld", broken);
    return 0;
}

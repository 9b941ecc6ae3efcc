/* A process in a container, for test_container.py.
 *
 *   container hold KIND BYTES   allocates so much, frees it, prints "freed", and waits until its
 *                               standard input ends; then it allocates a little and ends
 *   container take BYTES        takes so much from the kernel, and ends
 *
 * KIND: huge, large or small blocks, or threads, which allocate and free the small ones. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { THREADS = 4, HUGE = 20 << 20, LARGE = 1 << 20, SMALL = 4000 };

static char *filled(size_t n)
{
    char *block = malloc(n);
    if (block == NULL)
        exit(3);
    memset(block, 1, n);
    return block;
}

static void come_and_go(size_t n, size_t bytes)
{
    size_t count = bytes / n;
    char **blocks = (char **)filled(count * sizeof *blocks);
    for (size_t i = 0; i < count; i++)
        blocks[i] = filled(n);
    for (size_t i = 0; i < count; i++)
        free(blocks[i]);
    free((void *)blocks);
}

static size_t each;

static void *work(void *unused)
{
    (void)unused;
    come_and_go(SMALL, each);
    return NULL;
}

static void with_threads(size_t bytes)
{
    pthread_t threads[THREADS];
    each = bytes / THREADS;
    for (unsigned i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, work, NULL) != 0)
            exit(3);
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "take") == 0) {
        size_t bytes = strtoul(argv[2], NULL, 0);
        char *start = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (start == MAP_FAILED)
            return 3;
        memset(start, 1, bytes);
        return 0;
    }
    if (argc != 4 || strcmp(argv[1], "hold") != 0)
        return 2;
    size_t bytes = strtoul(argv[3], NULL, 0);
    if (strcmp(argv[2], "threads") == 0)
        with_threads(bytes);
    else
        come_and_go(argv[2][0] == 'h' ? HUGE : argv[2][0] == 'l' ? LARGE : SMALL, bytes);
    char byte;
    if (write(STDOUT_FILENO, "freed\n", 6) != 6 || read(STDIN_FILENO, &byte, 1) != 0)
        return 2;
    come_and_go(SMALL, 1 << 20);
    return 0;
}

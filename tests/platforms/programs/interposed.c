/* Calls of an allocator that take it to what it asks of libc: a first block, blocks of all sizes,
 * threads, a fork, a report, an end. It prints whose malloc it has called, and how often the
 * function that a preloaded library has interposed. */
#define _GNU_SOURCE
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

void *hakmem_malloc(size_t n) __attribute__((weak));
int malloc_trim(size_t pad) __attribute__((weak)); /* not musl's, nor musl's malloc_info */
int malloc_info(int options, FILE *stream) __attribute__((weak));
unsigned long interposer_calls(void) __attribute__((weak));

static void need(bool good, const char *what)
{
    if (good)
        return;
    fprintf(stderr, "interposed: %s\n", what);
    _exit(1);
}

static void *all_sizes(void *unused)
{
    enum { MOST = 32 };
    static const size_t most = (size_t)4 << 20;
    for (int round = 0; round < 2; round++) {
        void *blocks[MOST];
        int n = 0;
        for (size_t size = 1; size <= most; size = size * 2 + 1) {
            blocks[n] = n % 3 == 1   ? calloc(1, size)
                        : n % 3 == 2 ? memalign(4096, size)
                                     : malloc(size);
            need(blocks[n] != NULL, "no block");
            memset(blocks[n], 1, size < 5000 ? size : 5000);
            n++;
        }
        for (int i = 0; i < n; i++) {
            blocks[i] = realloc(blocks[i], malloc_usable_size(blocks[i]) * 2);
            need(blocks[i] != NULL, "no larger block");
        }
        for (int i = 0; i < n; i++)
            free(blocks[i]);
        if (malloc_trim != NULL)
            malloc_trim(0);
    }
    return unused;
}

static void in_threads(void)
{
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        need(pthread_create(&threads[i], NULL, all_sizes, NULL) == 0, "no thread");
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
}

static int child_ended(void (*work)(void))
{
    pid_t child = fork();
    if (child == 0) {
        work();
        exit(0);
    }
    int status = -1;
    need(child > 0 && waitpid(child, &status, 0) == child, "no child");
    return status;
}

static void all_again(void)
{
    all_sizes(NULL);
    in_threads();
}

static void free_twice(void)
{
    void *volatile block = malloc(100);
    free(block);
    free(block);
}

int main(void)
{
    all_again();
    need(child_ended(all_again) == 0, "the child failed");
    int status = child_ended(free_twice);
    /* Other mallocs may not notice it. */
    need(hakmem_malloc == NULL || (WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT),
         "a block was freed twice");
    FILE *nowhere = fopen("/dev/null", "w");
    need(nowhere != NULL && (malloc_info == NULL || malloc_info(0, nowhere) == 0), "malloc_info");
    fclose(nowhere);
    bool ours = hakmem_malloc != NULL && (void *)malloc == (void *)hakmem_malloc;
    printf("malloc is %s, %lu calls\n", ours ? "hakmem's" : "another's",
           interposer_calls != NULL ? interposer_calls() : 0);
    return 0;
}

/* A C program with several threads that is linked in every way. It prints whose malloc it has
 * called. It defines names that an allocator's internal functions might have too. */
#define _GNU_SOURCE
#include <malloc.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void *hakmem_malloc(size_t n) __attribute__((weak));
void hakmem_free(void *p) __attribute__((weak));

int policy = 3;
void lock_wait(void) { policy++; }
void lock_wake(void) { policy--; }

static void *work(void *number)
{
    enum { N = 2000 };
    static __thread char *blocks[N];
    for (unsigned i = 0; i < N; i++) {
        size_t n = i * 7 + 1;
        blocks[i] = i % 3 == 0 ? calloc(1, n) : i % 3 == 1 ? memalign(64, n) : malloc(n);
        memset(blocks[i], (int)i, n);
        if (malloc_usable_size(blocks[i]) < n)
            abort();
        if (i % 5 == 0)
            blocks[i] = realloc(blocks[i], 2 * n);
    }
    for (unsigned i = 0; i < N; i++) {
        if (blocks[i][i * 7] != (char)i)
            abort();
        free(blocks[i]);
    }
    return number;
}

int main(void)
{
    pthread_t threads[8];
    for (int i = 0; i < 8; i++)
        if (pthread_create(&threads[i], NULL, work, NULL) != 0)
            return 2;
    for (int i = 0; i < 8; i++)
        pthread_join(threads[i], NULL);
    lock_wait();
    lock_wake();
    char *line = NULL;
    size_t room = 0;
    FILE *file = fopen("/proc/self/status", "r");
    if (file == NULL || getline(&line, &room, file) < 1)
        return 3;
    fclose(file);
    /* libc's own blocks and ours are of one allocator when its free takes them. */
    bool ours = hakmem_malloc != NULL && (void *)malloc == (void *)hakmem_malloc;
    if (ours)
        hakmem_free(line);
    else
        free(line);
    char *twin = strdup("text");
    free(twin);
    printf("policy %d, malloc is %s\n", policy, ours ? "hakmem's" : "another's");
    return 0;
}

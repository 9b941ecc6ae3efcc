/* Programs for which it is known what would serve them better.
 *
 *   tune_plant grow MIB SEED        a heap of small blocks that grows to so much
 *   tune_plant bursts THREADS SEED  threads that allocate many blocks of a size and free them all
 *   tune_plant idle MIB SEED        uses so much three times, and sleeps in between
 *   tune_plant again MIB SEED       the same without sleep
 *   tune_plant spin MS SEED         no heap at all: no setting changes anything
 *   tune_plant pairs COUNT SEED     a small heap, whose blocks come and go */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static uint64_t state;

static uint64_t draw(uint64_t *at)
{
    *at ^= *at << 13;
    *at ^= *at >> 7;
    *at ^= *at << 17;
    return *at;
}

struct node {
    struct node *next;
    char text[];
};

static struct node *fill(size_t bytes, uint64_t *at)
{
    struct node *first = NULL;
    for (size_t used = 0; used < bytes;) {
        size_t n = 32 + draw(at) % 400;
        struct node *node = malloc(n);
        memset(node, 1, n);
        node->next = first;
        first = node;
        used += n;
    }
    return first;
}

static void empty(struct node *node)
{
    while (node != NULL) {
        struct node *next = node->next;
        free(node);
        node = next;
    }
}

#define BURST 3000
#define BURSTS 150

static void *burst(void *argument)
{
    uint64_t at = (uintptr_t)argument;
    static _Thread_local void *blocks[BURST];
    for (int i = 0; i < BURSTS; i++) {
        size_t n = 64 + draw(&at) % 4 * 100;
        for (int k = 0; k < BURST; k++) {
            blocks[k] = malloc(n);
            memset(blocks[k], k, 16);
        }
        for (int k = 0; k < BURST; k++)
            free(blocks[k]);
    }
    return NULL;
}

static void bursts(long threads)
{
    pthread_t handles[256];
    for (long i = 0; i < threads && i < 256; i++)
        pthread_create(&handles[i], NULL, burst, (void *)(uintptr_t)(state + (uint64_t)i));
    for (long i = 0; i < threads && i < 256; i++)
        pthread_join(handles[i], NULL);
}

static void again(size_t bytes, long pause_ms)
{
    for (int i = 0; i < 3; i++) {
        empty(fill(bytes, &state));
        struct timespec pause = {0, pause_ms * 1000 * 1000};
        nanosleep(&pause, NULL);
        free(malloc(100));
    }
}

static void spin(long ms)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    int64_t until = now.tv_sec * 1000 + now.tv_nsec / 1000000 + ms;
    while (now.tv_sec * 1000 + now.tv_nsec / 1000000 < until)
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
}

static void pairs(long count)
{
    void *volatile blocks[64] = {0};
    for (long i = 0; i < count; i++) {
        uint64_t r = draw(&state);
        free(blocks[r % 64]);
        blocks[r % 64] = malloc(16 + r / 64 % 200);
    }
}

int main(int count, char **words)
{
    if (count != 4)
        return 2;
    long much = atol(words[2]);
    state = (uint64_t)atol(words[3]) * 0x9e3779b97f4a7c15u + 1;
    if (strcmp(words[1], "grow") == 0)
        empty(fill((size_t)much << 20, &state));
    else if (strcmp(words[1], "bursts") == 0)
        bursts(much);
    else if (strcmp(words[1], "idle") == 0)
        again((size_t)much << 20, 400);
    else if (strcmp(words[1], "again") == 0)
        again((size_t)much << 20, 0);
    else if (strcmp(words[1], "spin") == 0)
        spin(much);
    else if (strcmp(words[1], "pairs") == 0)
        pairs(much);
    else
        return 2;
    printf("done\n");
    return 0;
}

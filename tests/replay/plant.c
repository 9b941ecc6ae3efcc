/* Programs whose memory is known.
 *
 *   replay_plant live           a heap of small and middle blocks; prints its peak in KiB
 *   replay_plant sparse         one of four pages of large blocks written to, and nothing of a
 * larger one, which is the first to be freed; prints the same replay_plant threads COUNT  so many
 * threads, one after the other and in tens; blocks cross replay_plant moves          blocks that
 * realloc moves, on two threads replay_plant nothing        no block at all */
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static uint64_t state = 88172645463325252u;

static uint64_t draw(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

/* Anonymous memory, in KiB. */
static long anonymous(void)
{
    char text[128] = "";
    int file = open("/proc/self/statm", O_RDONLY);
    if (read(file, text, sizeof text - 1) < 0)
        abort();
    close(file);
    char *end;
    strtol(text, &end, 10);
    long resident = strtol(end, &end, 10), of_files = strtol(end, &end, 10);
    return (resident - of_files) * (sysconf(_SC_PAGESIZE) / 1024);
}

#define LIVE 60000

static void live(void)
{
    static char *blocks[LIVE];
    long before = anonymous(), most = 0;
    for (int i = 0; i < 4 * LIVE; i++) {
        unsigned at = (unsigned)(draw() % LIVE);
        free(blocks[at]);
        size_t n = i % 50 == 0 ? 4000 + draw() % 12000 : 16 + draw() % 700;
        blocks[at] = malloc(n);
        memset(blocks[at], 1, n);
        if (i % 5000 == 0 && anonymous() > most)
            most = anonymous();
    }
    printf("%ld\n", most - before);
    for (int i = 0; i < LIVE; i++)
        free(blocks[i]);
}

#define LARGE 24
#define LARGE_BYTES (4u << 20)
#define RESERVED_BYTES (256u << 20)

static void sparse(void)
{
    static char *blocks[LARGE];
    long before = anonymous();
    void *reserved = malloc(RESERVED_BYTES);
    for (int i = 0; i < LARGE; i++) {
        blocks[i] = malloc(LARGE_BYTES);
        for (size_t at = 0; at < LARGE_BYTES; at += 4 * 4096)
            blocks[i][at] = 1;
    }
    printf("%ld\n", anonymous() - before);
    fflush(stdout);
    struct timespec pause = {2, 0}; /* for the recorder to look */
    nanosleep(&pause, NULL);
    free(reserved);
    for (int i = 0; i < LARGE; i++)
        free(blocks[i]);
}

#define HANDED 200
static void *handed[HANDED];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *one_of_many(void *argument)
{
    unsigned seed = (unsigned)(uintptr_t)argument;
    for (int i = 0; i < 400; i++) {
        void *mine = malloc(16 + seed * 7 % 900);
        pthread_mutex_lock(&lock);
        void *other = handed[(seed + (unsigned)i) % HANDED];
        handed[(seed + (unsigned)i) % HANDED] = mine;
        pthread_mutex_unlock(&lock);
        free(other);
    }
    return NULL;
}

static void threads(long count)
{
    for (long i = 0; i < count; i += 10) {
        pthread_t some[10];
        for (long k = 0; k < 10; k++)
            pthread_create(&some[k], NULL, one_of_many, (void *)(uintptr_t)(i + k));
        for (long k = 0; k < 10; k++)
            pthread_join(some[k], NULL);
    }
    for (int i = 0; i < HANDED; i++)
        free(handed[i]);
}

static void *grow(void *argument)
{
    char **block = argument;
    for (size_t n = 16; n < 3u << 20; n += n / 3 + 1)
        *block = realloc(*block, n);
    return NULL;
}

static void moves(void)
{
    static char *blocks[2];
    for (int i = 0; i < 40; i++) {
        pthread_t other;
        blocks[0] = malloc(10);
        blocks[1] = NULL;
        pthread_create(&other, NULL, grow, &blocks[0]);
        grow(&blocks[1]);
        pthread_join(other, NULL);
        free(blocks[0]);
        free(blocks[1]);
    }
}

int main(int count, char **words)
{
    const char *what = count > 1 ? words[1] : "";
    if (strcmp(what, "live") == 0)
        live();
    else if (strcmp(what, "sparse") == 0)
        sparse();
    else if (strcmp(what, "threads") == 0)
        threads(atol(words[2]));
    else if (strcmp(what, "moves") == 0)
        moves();
    else if (strcmp(what, "nothing") != 0)
        return 2;
    return 0;
}

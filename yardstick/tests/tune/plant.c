/* Programs for which it is known what would serve them better.
 *
 *   tune_plant idle MIB SEED   uses so much three times, and sleeps in between
 *   tune_plant again MIB SEED  the same without sleep */
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

static void again(size_t bytes, long pause_ms)
{
    for (int i = 0; i < 3; i++) {
        empty(fill(bytes, &state));
        struct timespec pause = {0, pause_ms * 1000 * 1000};
        nanosleep(&pause, NULL);
        free(malloc(100));
    }
}

int main(int count, char **words)
{
    if (count != 4)
        return 2;
    long much = atol(words[2]);
    state = (uint64_t)atol(words[3]) * 0x9e3779b97f4a7c15u + 1;
    if (strcmp(words[1], "idle") == 0)
        again((size_t)much << 20, 400);
    else if (strcmp(words[1], "again") == 0)
        again((size_t)much << 20, 0);
    else
        return 2;
    printf("done\n");
    return 0;
}

/* Threads that sort words and pass them on: a C program whose malloc must be hakmem's. */
#include <pthread.h>
#include <string.h>

#include "proof.h"

#define THREADS 4
#define WORDS 20000

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void *words_made(void *argument)
{
    unsigned state = (unsigned)(size_t)argument + 1;
    char **words = calloc(WORDS, sizeof *words);
    for (int i = 0; words != NULL && i < WORDS; i++) {
        char text[64];
        state = state * 1664525U + 1013904223U;
        snprintf(text, sizeof text, "%0*u", 1 + (int)(state >> 27), state >> 8);
        if ((words[i] = strdup(text)) == NULL)
            return NULL;
    }
    return words;
}

int main(void)
{
    pthread_t threads[THREADS];
    for (size_t i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, words_made, (void *)i) != 0)
            return 2;
    for (int i = 0; i < THREADS; i++) {
        void *result;
        pthread_join(threads[i], &result);
        char **words = result;
        if (words == NULL)
            return 2;
        qsort(words, WORDS, sizeof *words, by_text);
        for (int w = 1; w < WORDS; w++)
            if (strcmp(words[w - 1], words[w]) > 0)
                return 3;
        for (int w = 0; w < WORDS; w++)
            free(words[w]);
        free(words);
    }
    if (expect("malloc", counted_of(malloc, free), FOUR_MIB, 2 * FOUR_MIB))
        return 1;
    return hakmem_check() == 0 ? 0 : 4;
}

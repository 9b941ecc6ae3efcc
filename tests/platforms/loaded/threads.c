/* A library whose constructor starts threads that allocate; some are still there at the end. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void *work(void *forever)
{
    do {
        void *blocks[200];
        for (size_t i = 0; i < 200; i++) {
            blocks[i] = malloc(i * 50);
            if (blocks[i] == NULL)
                abort();
            memset(blocks[i], 1, i * 50);
        }
        for (size_t i = 0; i < 200; i++)
            free(blocks[i]);
        if (forever != NULL)
            usleep(100);
    } while (forever != NULL);
    return NULL;
}

__attribute__((constructor)) static void begin(void)
{
    pthread_t threads[8];
    for (int i = 0; i < 8; i++)
        if (pthread_create(&threads[i], NULL, work, i < 4 ? NULL : &threads) != 0)
            abort();
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
}

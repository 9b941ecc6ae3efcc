/* The first thread ends before the others; one of these ends the process. */
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

static void *work(void *last)
{
    for (int i = 0; i < 1000; i++) {
        void *volatile block = malloc(100);
        free(block);
    }
    if (last != NULL) {
        usleep(100000);
        exit(0);
    }
    return NULL;
}

int main(void)
{
    for (int i = 0; i < 5; i++) {
        pthread_t thread;
        pthread_create(&thread, NULL, work, i == 4 ? "" : NULL);
    }
    pthread_exit(NULL);
}

/* A program that keeps and loses nothing: rounds of threads, so many that libc frees the memory of
 * some of them, which each allocate and free. Between the rounds there is one thread. With the word
 * "fork", a child does the same. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROUNDS 12
#define THREADS 8
#define CALLS 100

static void *work(void *meet)
{
    for (size_t i = 1; i <= CALLS; i++) {
        void *volatile p = malloc(i * 40);
        free(p);
    }
    pthread_barrier_wait(meet); /* all are there at once */
    return NULL;
}

static void rounds(void)
{
    pthread_barrier_t meet;
    pthread_t threads[THREADS];
    for (int round = 0; round < ROUNDS; round++) {
        pthread_barrier_init(&meet, NULL, THREADS);
        for (int i = 0; i < THREADS; i++)
            if (pthread_create(&threads[i], NULL, work, &meet) != 0)
                abort();
        for (int i = 0; i < THREADS; i++)
            pthread_join(threads[i], NULL);
        pthread_barrier_destroy(&meet);
    }
}

int main(int argc, char **argv)
{
    rounds();
    if (argc > 1 && strcmp(argv[1], "fork") == 0) {
        pid_t child = fork();
        if (child == 0)
            rounds();
        else if (waitpid(child, NULL, 0) != child)
            return 1;
    }
    return 0;
}

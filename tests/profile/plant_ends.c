/* Keeps blocks and ends in one way or another: profile_plant_ends WORD... does what each word says,
 * in order. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define BLOCKS 100
#define NOINLINE __attribute__((noinline))

static void *volatile kept[2][BLOCKS];

NOINLINE static void keep(void)
{
    for (int i = 0; i < BLOCKS; i++)
        kept[0][i] = malloc(1000);
}

NOINLINE static void keep_in_child(void)
{
    for (int i = 0; i < BLOCKS; i++)
        kept[1][i] = malloc(2000);
}

static void tidy(void)
{
    for (int i = 0; i < BLOCKS; i++)
        free(kept[0][i]);
}

static pthread_t first;

static void *tidy_afterwards(void *unused)
{
    pthread_join(first, NULL);
    tidy();
    _exit(7);
    return unused;
}

/* The first thread ends, and the process does not. */
static void leave(void)
{
    pthread_t other;
    first = pthread_self();
    if (pthread_create(&other, NULL, tidy_afterwards, NULL) == 0)
        pthread_exit(NULL);
}

static volatile int may_end;

static void *ends_by_itself(void *unused)
{
    while (!may_end)
        ;
    return unused;
}

/* Children, in each of which threads end by themselves while the process ends: in each a little
 * later than in the one before it. */
#define CHILDREN 200
#define MEET 4

static void meet(void)
{
    for (int child = 0; child < CHILDREN; child++) {
        pid_t number = fork();
        pthread_t other;
        for (int i = 0; number == 0 && i < MEET; i++)
            pthread_create(&other, NULL, ends_by_itself, NULL);
        may_end = number == 0;
        for (volatile int i = 0; i < child * 2000; i++)
            ;
        if (number == 0)
            _exit(0);
        while (waitpid(number, NULL, 0) < 0 && errno == EINTR)
            ;
    }
}

static void on_term(int number) { _exit(number); }

static void end_by(int number)
{
    kill(getpid(), number);
    for (;;)
        pause();
}

/* Both go on with the next word; the parent when the child has ended. */
static void forks(void)
{
    pid_t child = fork();
    if (child == 0) {
        keep_in_child();
        return;
    }
    while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
        ;
}

int main(int argc, char **argv)
{
    (void)argc;
    for (char **word = argv + 1; *word != NULL; word++) {
        if (strcmp(*word, "keep") == 0)
            keep();
        else if (strcmp(*word, "fork") == 0)
            forks();
        else if (strcmp(*word, "tidy") == 0)
            atexit(tidy);
        else if (strcmp(*word, "exit") == 0)
            exit(6);
        else if (strcmp(*word, "leave") == 0)
            leave();
        else if (strcmp(*word, "meet") == 0)
            meet();
        else if (strcmp(*word, "handle") == 0)
            signal(SIGTERM, on_term);
        else if (strcmp(*word, "exec") == 0) {
            *word = argv[0];
            execv(argv[0], word);
            return 1;
        } else if (strcmp(*word, "term") == 0)
            end_by(SIGTERM);
        else if (strcmp(*word, "int") == 0)
            end_by(SIGINT);
        else if (strcmp(*word, "kill") == 0)
            end_by(SIGKILL);
        else if (strcmp(*word, "abort") == 0)
            abort();
        else if (strcmp(*word, "_exit") == 0)
            _exit(4);
        else if (strcmp(*word, "quick_exit") == 0)
            quick_exit(5);
        else if (strcmp(*word, "wait") == 0) {
            printf("ready\n");
            fflush(stdout);
            for (;;)
                pause();
        } else
            return 2;
    }
    return 0;
}

/* Grows to so many MiB, of which `growing` allocates nine tenths, then goes on for a while with
 * what it has. With a second word: "threads", four of them at once; "fork", in a child, too, that
 * is made when a quarter is there; "serve", by so many MiB at each line of input. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define BLOCK 1000
#define MIB ((size_t)1 << 20)

__attribute__((noinline)) static char *growing(void)
{
    char *volatile p = malloc(BLOCK);
    return p;
}

__attribute__((noinline)) static char *other(void)
{
    char *volatile p = malloc(BLOCK);
    return p;
}

static void grow(size_t bytes)
{
    for (size_t i = 0; i < bytes / BLOCK; i++) {
        char *p = i % 10 == 0 ? other() : growing();
        if (p == NULL)
            exit(3);
        memset(p, 1, BLOCK);
    }
}

/* Blocks come and go, and time passes. */
static void go_on(void)
{
    for (unsigned i = 0; i < 100; i++) {
        for (unsigned k = 0; k < 1000; k++)
            free(other());
        usleep(1000);
    }
}

static void *work(void *bytes)
{
    grow(*(size_t *)bytes);
    go_on();
    return NULL;
}

int main(int count, char **words)
{
    size_t bytes = (size_t)(count > 1 ? atoi(words[1]) : 0) * MIB;
    const char *how = count > 2 ? words[2] : "";
    if (strcmp(how, "threads") == 0) {
        pthread_t threads[4];
        size_t part = bytes / 4;
        for (unsigned i = 0; i < 4; i++)
            if (pthread_create(&threads[i], NULL, work, &part) != 0)
                return 3;
        for (unsigned i = 0; i < 4; i++)
            pthread_join(threads[i], NULL);
    } else if (strcmp(how, "serve") == 0) {
        char line[16];
        puts("ready");
        fflush(stdout);
        while (fgets(line, sizeof line, stdin) != NULL) {
            if (strcmp(line, "grow\n") == 0)
                grow(bytes);
            go_on();
            puts("0");
            fflush(stdout);
        }
    } else if (strcmp(how, "fork") == 0) {
        int status = 0;
        grow(bytes / 4);
        pid_t child = fork();
        grow(bytes - bytes / 4);
        go_on();
        if (child != 0 && (waitpid(child, &status, 0) != child || status != 0))
            return 3;
    } else {
        work(&bytes);
    }
    return 0;
}

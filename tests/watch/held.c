/* Functions of known names hold known amounts; each word on standard input is done, and answered by
 * a line:
 *
 *   pin    `lasting` keeps one block of 240 bytes in each page, and `passing` frees those around it
 *   grow   `growing` keeps 16 MiB more
 *   keep   `keeping` keeps 64 MiB
 *   work   allocates and frees, so that orders are obeyed */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST (1 << 20)

static void *kept[MOST], *freed[MOST];
static size_t count;

__attribute__((noinline)) static void *lasting(void)
{
    char *p = malloc(240);
    p[0] = 1;
    return p;
}

__attribute__((noinline)) static void *passing(void)
{
    char *p = malloc(240);
    p[0] = 1;
    return p;
}

__attribute__((noinline)) static void *growing(void)
{
    char *p = malloc(3000);
    p[0] = 1;
    return p;
}

__attribute__((noinline)) static void *keeping(void)
{
    char *p = malloc(1000);
    p[0] = 1;
    return p;
}

static void pin(void)
{
    size_t frees = 0;
    for (size_t i = 0; i < 300000; i++)
        if (i % 17 == 0)
            kept[count++] = lasting();
        else
            freed[frees++] = passing();
    for (size_t i = 0; i < frees; i++)
        free(freed[i]);
}

static void keep(void *(*function)(void), size_t blocks)
{
    for (size_t i = 0; i < blocks && count < MOST; i++)
        kept[count++] = function();
}

int main(void)
{
    char word[16];
    puts("ready");
    fflush(stdout);
    while (fgets(word, sizeof word, stdin) != NULL) {
        if (strcmp(word, "pin\n") == 0)
            pin();
        else if (strcmp(word, "grow\n") == 0)
            keep(growing, (16 << 20) / 3000);
        else if (strcmp(word, "keep\n") == 0)
            keep(keeping, (64 << 20) / 1000);
        for (size_t i = 0; i < 2000; i++) {
            void *volatile p = malloc(100);
            free(p);
        }
        puts("0");
        fflush(stdout);
    }
    return 0;
}

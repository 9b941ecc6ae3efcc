/* Prints how many KiB of freed blocks stay resident, at once and after other blocks were freed:
 * `options_kept huge|slices MIB`. Freed are a block of 64 MiB or 32 of 1 MiB, then MIB of others,
 * which can't lie where those did. */
#include <hakmem/hakmem.h>

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define KiB ((size_t)1 << 10)
#define MiB ((size_t)1 << 20)

static size_t resident(void)
{
    char text[256] = "";
    int file = open("/proc/self/statm", O_RDONLY);
    if (file < 0 || read(file, text, sizeof text - 1) <= 0)
        exit(1);
    close(file);
    return strtoul(strchr(text, ' '), NULL, 10) * (size_t)sysconf(_SC_PAGESIZE) / KiB;
}

static void *get(size_t n)
{
    void *p = hakmem_malloc(n);
    if (p == NULL)
        exit(1);
    return p;
}

static void touch_and_free(size_t count, size_t n)
{
    void *blocks[32];
    for (size_t i = 0; i < count; i++)
        blocks[i] = memset(get(n), 1, n);
    for (size_t i = 0; i < count; i++)
        hakmem_free(blocks[i]);
}

static void print_growth(size_t before)
{
    size_t now = resident();
    printf("%zu\n", now > before ? now - before : 0);
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    bool huge = strcmp(argv[1], "huge") == 0;
    size_t others = strtoul(argv[2], NULL, 10);
    size_t other = huge ? MiB : 4 * MiB;
    hakmem_free(get(1));
    size_t before = resident();
    touch_and_free(huge ? 1 : 32, huge ? 64 * MiB : MiB);
    print_growth(before);
    for (size_t freed = 0; freed < others * MiB; freed += other)
        hakmem_free(get(other));
    print_growth(before);
    return 0;
}

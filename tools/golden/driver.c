/* Calls one entry point of the preloaded allocator a given number of times, on blocks of 64 bytes
 * that go round, so that two runs of different length differ by calls of the warm fast path alone.
 *
 * Usage: driver ENTRY ROUNDS; exit status 3: there is no such entry point. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIZE = 64 };

/* Looked up at run time: no compiler may see what is called, and C++ needs no C++ here. */
static void *entry(const char *name)
{
    void *found = dlsym(RTLD_DEFAULT, name);
    if (found == NULL) {
        fprintf(stderr, "driver: no %s in this process\n", name);
        exit(3);
    }
    return found;
}

static void pairs(long rounds, void *(*take)(size_t), void (*give)(void *))
{
    for (long i = 0; i < rounds; i++)
        give(take(SIZE));
}

static void sized_pairs(long rounds, void *(*take)(size_t), void (*give)(void *, size_t))
{
    for (long i = 0; i < rounds; i++)
        give(take(SIZE), SIZE);
}

static void zeroed_pairs(long rounds, void *(*take)(size_t, size_t), void (*give)(void *))
{
    for (long i = 0; i < rounds; i++)
        give(take(1, SIZE));
}

static void resizes(long rounds, void *block, void *(*resize)(void *, size_t))
{
    for (long i = 0; i < rounds; i++)
        block = resize(block, SIZE);
}

static void questions(long rounds, void *block, size_t (*usable)(void *))
{
    for (long i = 0; i < rounds; i++)
        usable(block);
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    const char *name = argv[1];
    long rounds = strtol(argv[2], NULL, 10);
    void *(*take)(size_t) = entry("malloc");

    if (strcmp(name, "malloc") == 0 || strcmp(name, "free") == 0)
        pairs(rounds, take, entry("free"));
    else if (strcmp(name, "_Znwm") == 0 || strcmp(name, "_ZdlPv") == 0)
        pairs(rounds, entry("_Znwm"), entry("_ZdlPv"));
    else if (strcmp(name, "_ZnwmRKSt9nothrow_t") == 0) /* which does not look at the tag */
        pairs(rounds, entry(name), entry("_ZdlPv"));
    else if (strcmp(name, "_ZdlPvm") == 0)
        sized_pairs(rounds, entry("_Znwm"), entry(name));
    else if (strcmp(name, "calloc") == 0)
        zeroed_pairs(rounds, entry(name), entry("free"));
    else if (strcmp(name, "realloc") == 0)
        resizes(rounds, take(SIZE), entry(name));
    else if (strcmp(name, "malloc_usable_size") == 0)
        questions(rounds, take(SIZE), entry(name));
    else
        return 2;
    return 0;
}

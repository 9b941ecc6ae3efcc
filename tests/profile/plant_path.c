/* Allocates by many paths; by one of them as many blocks more as the first argument says, and by
   256 others as many more each as the second says. */
#include <stdlib.h>

static void *kept[800000];
static int count;

static void keep(void *p) { kept[count++] = p; }

__attribute__((noinline)) static void steady(void)
{
    for (int i = 0; i < 200000; i++)
        keep(malloc(200));
}

__attribute__((noinline)) static void planted(int more)
{
    for (int i = 0; i < 200000 + more; i++)
        keep(malloc(64 + (size_t)(i % 300)));
}

/* Blocks that are sampled nearly always, each by a path of its own. */
#define ONCE(name) \
    __attribute__((noinline)) static void name(void) { keep(malloc(40000)); }
ONCE(first)
ONCE(second)
ONCE(third)
ONCE(fourth)

__attribute__((noinline)) static void one_of_many(int more)
{
    for (int i = 0; i < 1000 + more; i++)
        keep(malloc(400));
}

__attribute__((noinline)) static void many(int more)
{
#define FOUR(what) what what what what
    FOUR(FOUR(FOUR(FOUR(one_of_many(more);))))
}

int main(int words, char **word)
{
    steady();
    planted(words > 1 ? atoi(word[1]) : 0);
    many(words > 2 ? atoi(word[2]) : 0);
    first();
    second();
    third();
    fourth();
    return 0;
}

/* A program that finds out by itself whether its malloc is jemalloc's, as folly and what is built
 * on it do: all functions are there, and a counter of the thread grows with a malloc. Prints what
 * it found. Then it works as it would: with those functions, or with malloc's alone. */
#include <malloc.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WEAK __attribute__((weak))
WEAK void *mallocx(size_t, int);
WEAK void *rallocx(void *, size_t, int);
WEAK size_t xallocx(void *, size_t, size_t, int);
WEAK size_t sallocx(const void *, int);
WEAK void dallocx(void *, int);
WEAK void sdallocx(void *, size_t, int);
WEAK size_t nallocx(size_t, int);
WEAK int mallctl(const char *, void *, size_t *, void *, size_t);
WEAK int mallctlnametomib(const char *, size_t *, size_t *);
WEAK int mallctlbymib(const size_t *, size_t, void *, size_t *, void *, size_t);

static bool all_there(void)
{
    return mallocx && rallocx && xallocx && sallocx && dallocx && sdallocx && nallocx && mallctl &&
           mallctlnametomib && mallctlbymib;
}

static bool is_jemalloc(void)
{
    const volatile uint64_t *counter;
    size_t bytes = sizeof counter;
    if (!all_there() || mallctl("thread.allocatedp", &counter, &bytes, NULL, 0) != 0 ||
        bytes != sizeof counter)
        return false;
    uint64_t before = *counter;
    static void *volatile block;
    block = malloc(1);
    bool counts = *counter != before;
    free(block);
    return counts;
}

/* A buffer that grows, as a vector does. */
static int work(bool with)
{
    size_t room = with ? nallocx(100, 0) : 100;
    char *buffer = with ? mallocx(room, 0) : malloc(room);
    for (size_t n = 0; n < 3000000; n++) {
        if (n == room && with && xallocx(buffer, 2 * room, 0, 0) >= 2 * room)
            room *= 2;
        if (n == room) {
            room = with ? nallocx(2 * room, 0) : 2 * room;
            buffer = with ? rallocx(buffer, room, 0) : realloc(buffer, room);
        }
        buffer[n] = (char)n;
    }
    int wrong = malloc_usable_size(buffer) < room;
    for (size_t n = 0; n < 3000000; n++)
        wrong += buffer[n] != (char)n;
    if (with)
        sdallocx(buffer, room, 0);
    else
        free(buffer);
    return wrong;
}

int main(void)
{
    bool is = is_jemalloc();
    printf("%s, %s, %d %d wrong\n", all_there() ? "there" : "not there", is ? "jemalloc" : "malloc",
           work(is), work(all_there()));
    return 0;
}

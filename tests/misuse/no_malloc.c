/* Watches libc's malloc: a call of it while hakmem reports a misuse ends the program. */
#include "cases.h"

#include <unistd.h>

void *__libc_malloc(size_t n);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *p, size_t n);
void *__libc_memalign(size_t align, size_t n);
void __libc_free(void *p);

static void watch(void)
{
    static const char line[] = "malloc was called during a report\n";
    if (!malloc_forbidden)
        return;
    _exit(write(STDOUT_FILENO, line, sizeof line - 1) < 0 ? 98 : 97);
}

void *malloc(size_t n)
{
    watch();
    return __libc_malloc(n);
}

void *calloc(size_t count, size_t size)
{
    watch();
    return __libc_calloc(count, size);
}

void *realloc(void *p, size_t n)
{
    watch();
    return __libc_realloc(p, n);
}

void *memalign(size_t align, size_t n)
{
    watch();
    return __libc_memalign(align, n);
}

void *aligned_alloc(size_t align, size_t n)
{
    watch();
    return __libc_memalign(align, n);
}

void free(void *p)
{
    watch();
    __libc_free(p);
}

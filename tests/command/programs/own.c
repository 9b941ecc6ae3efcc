/* A small malloc that is not hakmem's, to link into programs and libraries. */
#include <stddef.h>
#include <string.h>

#ifdef HIDDEN
#pragma GCC visibility push(hidden)
#endif

static _Alignas(16) char memory[1 << 20];
static size_t used;

void *malloc(size_t n)
{
    size_t *block = (size_t *)(memory + used);
    used += (n + 31) & ~(size_t)15;
    block[1] = n;
    return used <= sizeof memory ? block + 2 : NULL;
}

void *calloc(size_t count, size_t n) { return malloc(count * n); } /* never used before: zero */

void *realloc(void *p, size_t n)
{
    void *block = malloc(n);
    size_t before = p == NULL ? 0 : ((size_t *)p)[-1];
    return p == NULL || block == NULL ? block : memcpy(block, p, before < n ? before : n);
}

void free(void *p) { (void)p; }

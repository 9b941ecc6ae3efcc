/* A library with an allocator of its own, under a name of its own: it asks malloc for nothing. With
 * TRACES only the allocator's words are left of it, as where symbols are stripped. */
#include <stddef.h>

static _Alignas(16) char memory[1 << 16];
static size_t used;

#ifdef TRACES
#define ALLOCATE allocate
#else
#define ALLOCATE mi_malloc
#endif

void *ALLOCATE(size_t n)
{
    void *block = memory + used;
    used += (n + 15) & ~(size_t)15;
    return block;
}

#ifdef TRACES
const char *volatile message = "<jemalloc>: Out of memory";
#endif

int work(void) { return ALLOCATE(10) != NULL; }

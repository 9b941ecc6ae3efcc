/* A library that contains an allocator under another name and does not call malloc. With TRACES it
 * contains only the allocator's strings, as a library whose symbols were stripped. */
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

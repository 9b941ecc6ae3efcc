"""An allocator that passes for one, and fails in the suite."""

# The C library's malloc for all, but for the suite, which some time gets what ACTION does.
FAULTY = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t), __libc_free(void *);
void *malloc(size_t size)
{
    static int calls;
    if (__atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED) > 10000 &&
        strcmp(program_invocation_short_name, "suite") == 0)
        ACTION;
    return __libc_malloc(size);
}
void *calloc(size_t count, size_t size) { return __libc_calloc(count, size); }
void *realloc(void *block, size_t size) { return __libc_realloc(block, size); }
void free(void *block) { __libc_free(block); }
void *memalign(size_t to, size_t size) { return __libc_memalign(to, size); }
void *aligned_alloc(size_t to, size_t size) { return __libc_memalign(to, size); }
int posix_memalign(void **at, size_t to, size_t size)
{
    *at = __libc_memalign(to, size);
    return *at == NULL ? ENOMEM : 0;
}
size_t malloc_usable_size(void *block)
{
    size_t (*next)(void *) = (size_t(*)(void *))dlsym(RTLD_NEXT, "malloc_usable_size");
    return next(block);
}
"""

// A malloc that breaks after so many calls (AFTER): it crashes, or it hangs (HANG), or it changes
// the contents of small blocks (SPOIL). Below that it is glibc's, under names of its own, so that
// programs bind to it as to any other allocator.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stddef.h>
#include <unistd.h>

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *block, size_t size);
void __libc_free(void *block);

#ifdef SPOIL
// Changes a byte in 5000 blocks of 104 to 200 bytes, of each when the next is taken: the
// program has written it by then. For programs with one thread.
static unsigned char *last;

void *malloc(size_t size)
{
    static long calls, spoilt;
    unsigned char *block = __libc_malloc(size);
    if (++calls < AFTER || size < 104 || size > 200 || spoilt == 5000)
        return block;
    if (last) {
        last[64] ^= 1;
        spoilt++;
    }
    last = block;
    return block;
}

static void forget(void *block)
{
    if (block == last)
        last = NULL;
}

void *calloc(size_t count, size_t size) { return __libc_calloc(count, size); }
void *realloc(void *block, size_t size)
{
    forget(block);
    return __libc_realloc(block, size);
}
void free(void *block)
{
    forget(block);
    __libc_free(block);
}
#else
static void *counted(void *block)
{
    static long calls;
    if (__atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED) < AFTER)
        return block;
#ifdef HANG
    for (;;)
        pause();
#endif
    raise(SIGSEGV);
    return NULL;
}

void *malloc(size_t size) { return counted(__libc_malloc(size)); }
void *calloc(size_t count, size_t size) { return counted(__libc_calloc(count, size)); }
void *realloc(void *block, size_t size) { return counted(__libc_realloc(block, size)); }
void free(void *block) { __libc_free(block); }
#endif

// Of redis, which is linked with jemalloc and would ask that one about glibc's blocks.
size_t malloc_usable_size(void *block)
{
    static size_t (*of_glibc)(void *);
    if (!of_glibc)
        of_glibc = dlsym(dlopen("libc.so.6", RTLD_LAZY), "malloc_usable_size");
    return of_glibc(block);
}

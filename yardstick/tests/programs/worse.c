/* Preloaded, an allocator that is worse than the system's by a known amount: malloc goes through an
 * empty loop, WORSE_TURNS times for every 16 calls, all those of 1024 calls at once, so that what
 * it costs is in proportion to the turns; WORSE_KIB are held and never used, and the malloc of
 * number WORSE_ABORT, if it isn't 0, ends the program. It is compiled with its numbers. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* The system's, under the name by which its own parts call it. */
extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t number, size_t size);
extern void *__libc_realloc(void *block, size_t size);
extern void *__libc_memalign(size_t alignment, size_t size);
extern void __libc_free(void *block);

#if WORSE_KIB > 0
__attribute__((constructor)) static void hold(void)
{
    size_t bytes = (size_t)WORSE_KIB * 1024;
    void *held = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (held != MAP_FAILED)
        memset(held, 1, bytes);
}
#endif

static void burn(void)
{
    static unsigned calls;
    if (++calls % 1024 == 0)
        for (volatile int i = 0; i < WORSE_TURNS * (1024 / 16); i++)
            ;
}

void *malloc(size_t size)
{
#if WORSE_ABORT > 0
    static int calls;
    if (++calls == WORSE_ABORT) {
        static const char why[] = "worse: this malloc gives up\n";
        if (write(STDERR_FILENO, why, sizeof why - 1) < 0)
            _exit(1);
        abort();
    }
#endif
    burn();
    return __libc_malloc(size);
}

void free(void *block) { __libc_free(block); }

void *calloc(size_t number, size_t size) { return __libc_calloc(number, size); }

void *realloc(void *block, size_t size) { return __libc_realloc(block, size); }

void *memalign(size_t alignment, size_t size) { return __libc_memalign(alignment, size); }

void *aligned_alloc(size_t alignment, size_t size) { return __libc_memalign(alignment, size); }

int posix_memalign(void **block, size_t alignment, size_t size)
{
    *block = __libc_memalign(alignment, size);
    return *block ? 0 : ENOMEM;
}

size_t malloc_usable_size(void *block)
{
    size_t (*next)(void *);
    *(void **)&next = dlsym(RTLD_NEXT, "malloc_usable_size");
    return next(block);
}

/* Preloaded, the system's malloc made worse as it is compiled:
 *
 *   TURNS    of an empty loop for every 16 calls, all those of 1024 calls at once, so that what it
 *            costs is in proportion
 *   KIB      are held and never used
 *   AFTER    so many calls ACTION is done, in the program named ONLY if that is given
 *   SPOIL    after so many calls, a byte of 5000 blocks of 104 to 200 bytes changes, of each when
 *            the next is taken: the program has written it by then. For programs with one thread
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* The system's, under the names by which its own parts call them. */
void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);
void __libc_free(void *);

#ifdef KIB
__attribute__((constructor)) static void hold(void)
{
    size_t bytes = (size_t)KIB * 1024;
    void *held = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (held != MAP_FAILED)
        memset(held, 1, bytes);
}
#endif

static void count(void)
{
    static unsigned calls;
    unsigned now = __atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED);
    (void)now;
#ifdef TURNS
    if (now % 1024 == 0)
        for (volatile int i = 0; i < TURNS * (1024 / 16); i++)
            ;
#endif
#ifdef AFTER
    if (now >= AFTER && strcmp(ONLY "", *ONLY ? program_invocation_short_name : "") == 0) {
        static const char why[] = "bad: this malloc gives up\n";
        if (write(STDERR_FILENO, why, sizeof why - 1) < 0)
            _exit(1);
        ACTION;
    }
#endif
}

static unsigned char *last;

void *malloc(size_t size)
{
    count();
    unsigned char *block = __libc_malloc(size);
#ifdef SPOIL
    static long calls, spoilt;
    if (++calls < SPOIL || size < 104 || size > 200 || spoilt == 5000)
        return block;
    if (last) {
        last[64] ^= 1;
        spoilt++;
    }
    last = block;
#endif
    return block;
}

static void *forget(void *block)
{
    if (block == last)
        last = NULL;
    return block;
}

void *calloc(size_t number, size_t size)
{
    count();
    return __libc_calloc(number, size);
}
void *realloc(void *block, size_t size)
{
    count();
    return __libc_realloc(forget(block), size);
}
void free(void *block) { __libc_free(forget(block)); }
void *memalign(size_t alignment, size_t size) { return __libc_memalign(alignment, size); }
void *aligned_alloc(size_t alignment, size_t size) { return __libc_memalign(alignment, size); }
int posix_memalign(void **block, size_t alignment, size_t size)
{
    *block = __libc_memalign(alignment, size);
    return *block ? 0 : ENOMEM;
}

/* Of redis, which is linked with jemalloc and would ask that one about glibc's blocks. */
size_t malloc_usable_size(void *block)
{
    static size_t (*of_glibc)(void *);
    if (!of_glibc)
        *(void **)&of_glibc = dlsym(dlopen("libc.so.6", RTLD_LAZY), "malloc_usable_size");
    return of_glibc(block);
}

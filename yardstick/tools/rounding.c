/*
 * Preloaded in hakmem's place, with hakmem behind it: how much of a program's
 * memory is rounding. For each block it keeps how many bytes were asked for, in
 * a word of its own per 16 bytes of address space, of which only what is
 * touched exists. Each process writes a file of its own, kept up to date, so
 * that none is lost however the process ends (yardstick/tools/rounding.py reads them).
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

void *hakmem_malloc(size_t size);
void *hakmem_calloc(size_t count, size_t size);
void *hakmem_realloc(void *block, size_t size);
void *hakmem_memalign(size_t alignment, size_t size);
void *hakmem_pvalloc(size_t size);
size_t hakmem_malloc_usable_size(const void *block);
void hakmem_free(void *block);

#define EXPORT __attribute__((visibility("default")))
#define ADDRESS_BITS 47
#define GRAIN_BITS 4

struct figures {
    uint64_t asked, usable;           /* of blocks in use; atomic */
    uint64_t peak_asked, peak_usable; /* when there was most in use; peak */
    uint64_t all_asked, all_usable;   /* of all blocks there ever were; atomic */
    char program[32];
};

static struct figures *figures;
static uint64_t *asked_at; /* bytes, by address */
static pthread_once_t begun = PTHREAD_ONCE_INIT;
static int peak; /* a lock */

/* A file for this process; nothing is recorded where that fails. */
static void file_begin(void)
{
    const char *folder = getenv("ROUNDING_FOLDER");
    if (folder == NULL)
        return;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    char path[512];
    snprintf(path, sizeof path, "%s/%d.%lld.%09ld", folder, getpid(), (long long)now.tv_sec,
             now.tv_nsec);
    int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (file < 0 || ftruncate(file, sizeof *figures) != 0)
        return;
    struct figures *fresh = mmap(NULL, sizeof *fresh, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (fresh == MAP_FAILED)
        return;
    if (figures != NULL) { /* the child has what the parent had */
        *fresh = *figures;
        fresh->peak_asked = fresh->peak_usable = fresh->all_asked = fresh->all_usable = 0;
    }
    int name = open("/proc/self/comm", O_RDONLY | O_CLOEXEC);
    if (name >= 0 && read(name, fresh->program, sizeof fresh->program - 1) > 0)
        fresh->program[strcspn(fresh->program, "\n")] = '\0';
    close(name);
    figures = fresh;
}

static void child_begin(void)
{
    __atomic_store_n(&peak, 0, __ATOMIC_RELAXED);
    file_begin();
}

static void begin(void)
{
    void *words = mmap(NULL, ((size_t)1 << (ADDRESS_BITS - GRAIN_BITS)) * sizeof *asked_at,
                       PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (words == MAP_FAILED)
        return;
    asked_at = words;
    file_begin();
    if (figures != NULL)
        pthread_atfork(NULL, NULL, child_begin);
}

static void peak_look(uint64_t asked, uint64_t usable)
{
    /* By a thousandth, so that the lock is rare while a heap grows. */
    if (usable <= figures->peak_usable + figures->peak_usable / 1024 ||
        __atomic_exchange_n(&peak, 1, __ATOMIC_ACQUIRE) != 0)
        return;
    if (usable > figures->peak_usable) {
        figures->peak_usable = usable;
        figures->peak_asked = asked;
    }
    __atomic_store_n(&peak, 0, __ATOMIC_RELEASE);
}

static void *note(void *block, size_t asked)
{
    pthread_once(&begun, begin);
    if (block == NULL || figures == NULL)
        return block;
    size_t usable = hakmem_malloc_usable_size(block);
    asked_at[(uintptr_t)block >> GRAIN_BITS] = asked + 1;
    __atomic_fetch_add(&figures->all_asked, asked, __ATOMIC_RELAXED);
    __atomic_fetch_add(&figures->all_usable, usable, __ATOMIC_RELAXED);
    uint64_t now_asked = __atomic_add_fetch(&figures->asked, asked, __ATOMIC_RELAXED);
    uint64_t now_usable = __atomic_add_fetch(&figures->usable, usable, __ATOMIC_RELAXED);
    peak_look(now_asked, now_usable);
    return block;
}

/* Before the block is gone. Returns what was asked for, and one more; 0 if it is not known. */
static uint64_t forget(void *block)
{
    if (block == NULL || figures == NULL)
        return 0;
    uint64_t *word = &asked_at[(uintptr_t)block >> GRAIN_BITS];
    uint64_t asked = *word;
    if (asked == 0)
        return 0;
    *word = 0;
    __atomic_fetch_sub(&figures->asked, asked - 1, __ATOMIC_RELAXED);
    __atomic_fetch_sub(&figures->usable, hakmem_malloc_usable_size(block), __ATOMIC_RELAXED);
    return asked;
}

EXPORT void *malloc(size_t size) { return note(hakmem_malloc(size), size); }

EXPORT void *calloc(size_t count, size_t size)
{
    return note(hakmem_calloc(count, size), count * size);
}

EXPORT void *realloc(void *block, size_t size)
{
    uint64_t before = forget(block);
    void *moved = hakmem_realloc(block, size);
    if (moved == NULL && size != 0 && before != 0)
        note(block, before - 1); /* it stays */
    return note(moved, size);
}

EXPORT void *reallocarray(void *block, size_t count, size_t size)
{
    size_t all;
    if (!__builtin_mul_overflow(count, size, &all))
        return realloc(block, all);
    errno = ENOMEM;
    return NULL;
}

EXPORT void *memalign(size_t alignment, size_t size)
{
    return note(hakmem_memalign(alignment, size), size);
}

EXPORT void *aligned_alloc(size_t alignment, size_t size) { return memalign(alignment, size); }
EXPORT void *valloc(size_t size) { return memalign(4096, size); }
EXPORT void *pvalloc(size_t size) { return note(hakmem_pvalloc(size), size); }

EXPORT int posix_memalign(void **block, size_t alignment, size_t size)
{
    void *p = memalign(alignment, size);
    if (p == NULL)
        return ENOMEM;
    *block = p;
    return 0;
}

EXPORT void free(void *block)
{
    forget(block);
    hakmem_free(block);
}

EXPORT size_t malloc_usable_size(void *block) { return hakmem_malloc_usable_size(block); }

/* C++'s, by their names as linkers know them. None throws: what is measured here has memory. */
static void *made(void *block)
{
    if (block == NULL)
        abort();
    return block;
}

#define NEW(name) \
    EXPORT void *name(size_t size) { return made(malloc(size)); }
#define NEW_NOTHROW(name)                         \
    EXPORT void *name(size_t size, const void *n) \
    {                                             \
        (void)n;                                  \
        return malloc(size);                      \
    }
#define NEW_ALIGNED(name) \
    EXPORT void *name(size_t size, size_t alignment) { return made(memalign(alignment, size)); }
#define DELETE(name) \
    EXPORT void name(void *block) { free(block); }
#define DELETE_TOLD(name)                     \
    EXPORT void name(void *block, size_t was) \
    {                                         \
        (void)was;                            \
        free(block);                          \
    }
#define DELETE_TOLD_BOTH(name)                                  \
    EXPORT void name(void *block, size_t was, size_t alignment) \
    {                                                           \
        (void)was, (void)alignment;                             \
        free(block);                                            \
    }

NEW(_Znwm)
NEW(_Znam)
NEW_NOTHROW(_ZnwmRKSt9nothrow_t)
NEW_NOTHROW(_ZnamRKSt9nothrow_t)
NEW_ALIGNED(_ZnwmSt11align_val_t)
NEW_ALIGNED(_ZnamSt11align_val_t)
DELETE(_ZdlPv)
DELETE(_ZdaPv)
DELETE_TOLD(_ZdlPvm)
DELETE_TOLD(_ZdaPvm)
DELETE_TOLD(_ZdlPvSt11align_val_t)
DELETE_TOLD(_ZdaPvSt11align_val_t)
DELETE_TOLD_BOTH(_ZdlPvmSt11align_val_t)
DELETE_TOLD_BOTH(_ZdaPvmSt11align_val_t)

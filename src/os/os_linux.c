/* Linux. */
#define _GNU_SOURCE /* mremap */
#include "os/os.h"

#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* glibc 2.32 and later. */
#if __has_include(<sys/single_threaded.h>)
#include <sys/single_threaded.h>
#define HAS_SINGLE_THREADED
#endif

#ifndef PR_SET_VMA
#define PR_SET_VMA 0x53564d41
#define PR_SET_VMA_ANON_NAME 0
#endif

size_t os_page = 4096;
__thread bool fork_holds_locks;

void os_start(void)
{
    size_t page = getauxval(AT_PAGESZ);
    if (is_power_of_two(page))
        os_page = page;
}

static void *map(size_t length, int protection)
{
    int saved = errno;
    void *start =
        mmap(NULL, length, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    errno = saved;
    return start == MAP_FAILED ? NULL : start;
}

void *os_map(size_t length) { return map(length, PROT_READ | PROT_WRITE); }

void *os_map_aligned(size_t length, size_t align)
{
    /* The kernel places mappings next to each other, so the first try mostly fits. */
    char *start = os_map(length);
    if (start == NULL || ((uintptr_t)start & (align - 1)) == 0)
        return start;
    os_unmap(start, length);

    size_t wide;
    if (__builtin_add_overflow(length, align - os_page, &wide))
        return NULL;
    start = os_map(wide);
    if (start == NULL)
        return NULL;
    char *aligned = (char *)round_up((uintptr_t)start, align);
    size_t before = (size_t)(aligned - start);
    size_t after = wide - before - length;
    if (before > 0)
        os_unmap(start, before);
    if (after > 0)
        os_unmap(aligned + length, after);
    return aligned;
}

void *os_map_at(uintptr_t address, size_t length, bool *occupied)
{
    int saved = errno;
    void *wanted = (void *)address;
    void *start = mmap(wanted, length, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    *occupied = start == MAP_FAILED ? errno == EEXIST : start != wanted;
    errno = saved;
    if (start == wanted)
        return start;
    /* A kernel that doesn't know the flag takes the address for a hint. */
    if (start != MAP_FAILED)
        os_unmap(start, length);
    return NULL;
}

void *os_map_guarded(size_t length)
{
    char *start = map(length + 2 * os_page, PROT_NONE);
    if (start == NULL)
        return NULL;
    int saved = errno;
    int failed = mprotect(start + os_page, length, PROT_READ | PROT_WRITE);
    errno = saved;
    if (failed) {
        os_unmap(start, length + 2 * os_page);
        return NULL;
    }
    return start + os_page;
}

bool os_unmap(void *start, size_t length)
{
    int saved = errno;
    int failed = munmap(start, length);
    errno = saved;
    return !failed;
}

bool os_resize(void *start, size_t old_length, size_t new_length, bool *pieces)
{
    int saved = errno;
    void *result = mremap(start, old_length, new_length, 0);
    *pieces = result == MAP_FAILED && errno == EFAULT;
    errno = saved;
    return result != MAP_FAILED;
}

bool os_move(void *start, size_t old_length, void *target, size_t new_length)
{
    int saved = errno;
    void *result = mremap(start, old_length, new_length, MREMAP_MAYMOVE | MREMAP_FIXED, target);
    errno = saved;
    return result != MAP_FAILED;
}

bool os_purge(void *start, size_t length)
{
    int saved = errno;
    int failed;
    int tries = 3;
    do
        failed = madvise(start, length, MADV_DONTNEED);
    while (failed && errno == EAGAIN && --tries > 0);
    errno = saved;
    return !failed;
}

void os_small_pages(void *start, size_t length)
{
    int saved = errno;
    madvise(start, length, MADV_NOHUGEPAGE);
    errno = saved;
}

void os_name(void *start, size_t length, const char *name)
{
    static bool refused; /* atomic: a kernel without names says so each time */
    if (__atomic_load_n(&refused, __ATOMIC_RELAXED))
        return;
    int saved = errno;
    if (prctl(PR_SET_VMA, PR_SET_VMA_ANON_NAME, start, length, name) != 0)
        __atomic_store_n(&refused, true, __ATOMIC_RELAXED);
    errno = saved;
}

uint64_t os_random(void)
{
    int saved = errno;
    uint64_t number;
    if (syscall(SYS_getrandom, &number, sizeof number, 1 /* GRND_NONBLOCK */) != sizeof number)
        number = (uintptr_t)&number >> 4; /* where the stack is, which is random too */
    errno = saved;
    return number;
}

unsigned os_cpus(void)
{
    int saved = errno;
    unsigned long set[8192 / (8 * sizeof(unsigned long))];
    long bytes = syscall(SYS_sched_getaffinity, 0, sizeof set, set);
    errno = saved;
    unsigned cpus = 0;
    for (long i = 0; i < bytes / (long)sizeof set[0]; i++)
        cpus += count_bits(set[i]);
    return cpus > 0 ? cpus : 1;
}

bool os_single_threaded(void)
{
#ifdef HAS_SINGLE_THREADED
    return __libc_single_threaded;
#else
    return false;
#endif
}

unsigned os_thread_id(void) { return (unsigned)syscall(SYS_gettid); }

void os_print_error(const char *words, size_t length)
{
    int saved = errno;
    while (length > 0) {
        ssize_t written = write(STDERR_FILENO, words, length);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            break;
        words += written;
        length -= (size_t)written;
    }
    errno = saved;
}

static inline void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb" ::: "memory");
#endif
}

COLD void lock_wait(struct lock *lock)
{
    /* What a holder does takes a microsecond or so; sleeping costs several. */
    for (int i = 0; i < 100; i++) {
        relax();
        if (__atomic_load_n(&lock->state, __ATOMIC_RELAXED) == 0 && lock_try(lock))
            return;
    }
    int saved = errno;
    while (__atomic_exchange_n(&lock->state, 2, __ATOMIC_ACQUIRE) != 0)
        syscall(SYS_futex, &lock->state, FUTEX_WAIT_PRIVATE, 2, NULL, NULL, 0);
    errno = saved;
}

COLD void lock_wake(struct lock *lock)
{
    int saved = errno;
    syscall(SYS_futex, &lock->state, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    errno = saved;
}

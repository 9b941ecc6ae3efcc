/* System calls, made by the processor's own instruction. Libc's functions for them, its syscall()
 * too, may be replaced by another library that is preloaded, which may allocate in there or wait
 * for a thread that allocates; and several are points of cancellation.
 *
 * CALL(number, arguments...) returns what the kernel returns: when it fails, the negative number of
 * the error. errno stays as it is. */
#ifndef HAKMEM_OS_CALLS_H
#define HAKMEM_OS_CALLS_H

#include "base/atomic.h"

#include <fcntl.h>
#include <sys/syscall.h>

/* By libc's functions: for those who watch them. */
#if defined(__clang_analyzer__)
#define BY_LIBC 1
#else
#define BY_LIBC UNDER_SANITIZER
#endif

/* The negative numbers that are errors, in a result that may be an address. */
#define CALL_FAILED(result) ((unsigned long)(result) >= -4095ul)

#if defined(__x86_64__) && !BY_LIBC
static inline long call_kernel(long number, long a, long b, long c, long d, long e, long f)
{
    long result;
    register long fourth __asm__("r10") = d;
    register long fifth __asm__("r8") = e;
    register long sixth __asm__("r9") = f;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "0"(number), "D"(a), "S"(b), "d"(c), "r"(fourth), "r"(fifth), "r"(sixth)
                     : "rcx", "r11", "memory");
    return result;
}
#elif defined(__aarch64__) && !BY_LIBC
static inline long call_kernel(long number, long a, long b, long c, long d, long e, long f)
{
    register long which __asm__("x8") = number;
    register long first __asm__("x0") = a;
    register long second __asm__("x1") = b;
    register long third __asm__("x2") = c;
    register long fourth __asm__("x3") = d;
    register long fifth __asm__("x4") = e;
    register long sixth __asm__("x5") = f;
    __asm__ volatile("svc 0"
                     : "+r"(first)
                     : "r"(which), "r"(second), "r"(third), "r"(fourth), "r"(fifth), "r"(sixth)
                     : "memory", "cc");
    return first;
}
#else
/* For other processors too. */
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

static inline long call_libc(long number, long a, long b, long c, long d, long e, long f)
{
    switch (number) {
    case SYS_mmap:
        return (long)mmap((void *)a, (size_t)b, (int)c, (int)d, (int)e, f);
    case SYS_munmap:
        return munmap((void *)a, (size_t)b);
    case SYS_madvise:
        return madvise((void *)a, (size_t)b, (int)c);
    default:
        return syscall(number, a, b, c, d, e, f);
    }
}

static inline long call_kernel(long number, long a, long b, long c, long d, long e, long f)
{
    int before = errno;
    long result = call_libc(number, a, b, c, d, e, f);
    if (result == -1)
        result = -errno;
    errno = before;
    return result;
}
#endif

#define CALL_0(n) call_kernel(n, 0, 0, 0, 0, 0, 0)
#define CALL_1(n, a) call_kernel(n, (long)(a), 0, 0, 0, 0, 0)
#define CALL_2(n, a, b) call_kernel(n, (long)(a), (long)(b), 0, 0, 0, 0)
#define CALL_3(n, a, b, c) call_kernel(n, (long)(a), (long)(b), (long)(c), 0, 0, 0)
#define CALL_4(n, a, b, c, d) call_kernel(n, (long)(a), (long)(b), (long)(c), (long)(d), 0, 0)
#define CALL_5(n, a, b, c, d, e) \
    call_kernel(n, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), 0)
#define CALL_6(n, a, b, c, d, e, f) \
    call_kernel(n, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))
#define CALL_BY_COUNT(n, a, b, c, d, e, f, name, ...) name
#define CALL(...) \
    CALL_BY_COUNT(__VA_ARGS__, CALL_6, CALL_5, CALL_4, CALL_3, CALL_2, CALL_1, CALL_0)(__VA_ARGS__)

/* ---- on files ---- */

static inline int call_open(const char *path, int flags)
{
    return (int)CALL(SYS_openat, AT_FDCWD, path, flags | O_CLOEXEC, 0644);
}

static inline long call_read(int file, void *to, size_t bytes)
{
    return CALL(SYS_read, file, to, bytes);
}

static inline long call_read_at(int file, void *to, size_t bytes, uint64_t at)
{
    return CALL(SYS_pread64, file, to, bytes, at);
}

static inline long call_write(int file, const void *from, size_t bytes)
{
    return CALL(SYS_write, file, from, bytes);
}

static inline int call_rename(const char *from, const char *to)
{
    return (int)CALL(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
}

static inline int call_unlink(const char *path)
{
    return (int)CALL(SYS_unlinkat, AT_FDCWD, path, 0);
}

static inline int call_close(int file) { return (int)CALL(SYS_close, file); }

#endif

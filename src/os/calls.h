/* System calls, made by the processor's own instruction. Libc's functions for them, its syscall()
 * too, may be replaced by another library that is preloaded, which may allocate in there or wait
 * for a thread that allocates; and several are points of cancellation.
 *
 * CALL(number, arguments...) returns what the kernel returns: when it fails, the negative number of
 * the error. errno stays as it is. */
#ifndef HAKMEM_OS_CALLS_H
#define HAKMEM_OS_CALLS_H

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/atomic.h"
#include "base/memory.h"
#include "base/text.h"

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

/* ---- lines of files ----
 *
 * Files of /proc, line by line, into a buffer of the caller. */

struct lines {
    int file;
    char *text; /* of `room` bytes; a line of half as many is cut */
    size_t room;
    size_t from, to; /* what is read and not yet told */
    bool cut;        /* the line that was told last has a rest, which is left out */
};

/* The next line, without its end; null after the last. */
static inline char *line_next(struct lines *lines)
{
    const size_t most = lines->room / 2;
    for (;;) {
        char *start = lines->text + lines->from;
        size_t there = lines->to - lines->from;
        const char *end = text_find(start, there, '\n');
        if (end == NULL && there < most) {
            bytes_copy(lines->text, start, there);
            lines->from = 0;
            lines->to = there;
            long got = call_read(lines->file, lines->text + there, most);
            if (got <= 0 && got != -EINTR)
                return NULL;
            lines->to += got > 0 ? (size_t)got : 0;
            continue;
        }
        size_t length = end != NULL ? (size_t)(end - start) : most - 1;
        bool is_rest = lines->cut;
        start[length] = '\0';
        lines->from += length + 1;
        lines->cut = end == NULL;
        if (!is_rest)
            return start;
    }
}

/* The number at the start of a text, behind blanks; `*end` is what follows. */
static inline uint64_t number_at(const char *text, unsigned base, const char **end)
{
    uint64_t value = 0;
    for (; *text == ' ' || *text == '\t'; text++)
        ;
    for (;; text++) {
        unsigned digit = base;
        if (*text >= '0' && *text <= '9')
            digit = (unsigned)(*text - '0');
        else if (*text >= 'a' && *text <= 'f')
            digit = (unsigned)(*text - 'a') + 10;
        if (digit >= base)
            break;
        value = value * base + digit;
    }
    *end = text;
    return value;
}

/* ---- outputs that are no files ----
 *
 * None to be put in place of others: devices, pipes, and descriptors by a name, such as
 * /dev/stderr. What is meant for them is written to them as they are. */

/* Nothing waits for somebody who reads a pipe. */
#define STREAM_FLAGS (O_WRONLY | O_APPEND | O_NONBLOCK | O_NOCTTY)

static inline bool is_stream(const char *path)
{
    static const char names[][10] = {"/dev/std", "/dev/fd/", "/proc/"};
    struct stat about;
    for (unsigned i = 0; i < sizeof names / sizeof names[0]; i++)
        if (text_begins(path, names[i], text_length(names[i])))
            return true;
    return CALL(SYS_newfstatat, AT_FDCWD, path, &about, 0) == 0 && !S_ISREG(about.st_mode) &&
           !S_ISDIR(about.st_mode);
}

#endif

/* System calls on files. Libc's functions are points of cancellation, and other libraries replace
 * them. */
#ifndef HAKMEM_OS_CALLS_H
#define HAKMEM_OS_CALLS_H

#include <fcntl.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

static inline int call_open(const char *path, int flags)
{
    return (int)syscall(SYS_openat, AT_FDCWD, path, flags | O_CLOEXEC, 0644);
}

static inline long call_read(int file, void *to, size_t bytes)
{
    return syscall(SYS_read, file, to, bytes);
}

static inline long call_read_at(int file, void *to, size_t bytes, uint64_t at)
{
    return syscall(SYS_pread64, file, to, bytes, at);
}

static inline long call_write(int file, const void *from, size_t bytes)
{
    return syscall(SYS_write, file, from, bytes);
}

static inline int call_rename(const char *from, const char *to)
{
    return (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
}

static inline void call_unlink(const char *path) { syscall(SYS_unlinkat, AT_FDCWD, path, 0); }

static inline int call_close(int file) { return (int)syscall(SYS_close, file); }

#endif

/* The clock. The kernel puts a function into each process that reads it without a system call;
 * libc's function for it may be replaced by another library, which may allocate. The kernel's
 * functions are a small shared object without relocations (the vDSO, vdso(7)). */
#define _GNU_SOURCE /* ElfW */
#include "os/os.h"

#include <time.h>

#include "os/calls.h"
#include "os/symbols.h"

#if defined(__x86_64__)
#define NAME "__vdso_clock_gettime"
#elif defined(__aarch64__)
#define NAME "__kernel_clock_gettime"
#else
#define NAME ""
#endif

typedef int clock_function(clockid_t clock, struct timespec *now);

static int call_clock(clockid_t clock, struct timespec *now)
{
    return (int)CALL(SYS_clock_gettime, clock, now);
}

static clock_function *clock_read = call_clock; /* constant after the start */

#if UNDER_SANITIZER
void clock_start(uintptr_t functions)
{
    (void)functions;
    clock_read = clock_gettime;
}
#else

void clock_start(uintptr_t functions)
{
    const ElfW(Ehdr) *head = (const ElfW(Ehdr) *)functions;
    if (head == NULL)
        return;
    const ElfW(Phdr) *parts = (const ElfW(Phdr) *)(functions + head->e_phoff);
    const struct symbols symbols =
        symbols_of(functions, dynamic_of(functions, parts, head->e_phnum));
    clock_function *found = (clock_function *)symbols_function(&symbols, NAME);
    if (found != NULL)
        clock_read = found;
}
#endif

static struct timespec now_of(clockid_t clock)
{
    struct timespec now = {0, 0};
    clock_read(clock, &now);
    return now;
}

size_t os_milliseconds(void)
{
    struct timespec now = now_of(CLOCK_MONOTONIC_COARSE);
    return (size_t)now.tv_sec * 1000 + (size_t)now.tv_nsec / 1000000;
}

size_t os_worked_milliseconds(void)
{
    struct timespec now = now_of(CLOCK_PROCESS_CPUTIME_ID);
    return (size_t)now.tv_sec * 1000 + (size_t)now.tv_nsec / 1000000;
}

size_t os_nanoseconds(void)
{
    struct timespec now = now_of(CLOCK_MONOTONIC);
    return (size_t)now.tv_sec * 1000000000 + (size_t)now.tv_nsec;
}

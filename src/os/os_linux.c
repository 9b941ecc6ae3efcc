/* Linux. */
#define _GNU_SOURCE /* environ, MREMAP_MAYMOVE */
#include "os/os.h"

#include "base/atomic.h"
#include "base/policy.h"
#include "os/calls.h"
#include "os/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

/* glibc 2.32 and later. */
#if __has_include(<sys/single_threaded.h>)
#include <sys/single_threaded.h>
#define HAS_SINGLE_THREADED
#endif

#ifndef SYS_process_madvise
#define SYS_process_madvise 440
#endif
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif
#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102
#define MADV_GUARD_REMOVE 103
#endif
#ifndef PR_SET_VMA
#define PR_SET_VMA 0x53564d41
#define PR_SET_VMA_ANON_NAME 0
#endif

size_t os_page = 4096;

static size_t mapped_bytes; /* atomic */
static size_t mapped_most;  /* atomic */

size_t os_mapped(void) { return load_relaxed(&mapped_bytes); }
size_t os_mapped_most(void) { return load_relaxed(&mapped_most); }

/* Asks the kernel to wait for another value than the word has: it reads the word before it sees
 * that there is nothing to wait for. Should the word be this value, which no futex has, the wait is
 * over at once. */
static bool word_readable(uintptr_t at)
{
    static const struct timespec no_time;
    long said =
        CALL(SYS_futex, at & ~(uintptr_t)3, FUTEX_WAIT_PRIVATE, 0x9e3779b9, &no_time, NULL, 0);
    return said == 0 || said == -EAGAIN || said == -ETIMEDOUT || said == -EINTR;
}

bool os_readable(const void *p)
{
    uintptr_t first = (uintptr_t)p;
    uintptr_t last = first + 7;
    return word_readable(first) && ((first ^ last) < os_page || word_readable(last));
}

static void count_mapped(size_t more)
{
    size_t now = add_relaxed(&mapped_bytes, more);
    size_t most = load_relaxed(&mapped_most);
    while (now > most && !__atomic_compare_exchange_n(&mapped_most, &most, now, true,
                                                      __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        ;
}

/* Which mappings the system gives huge pages: all, those that ask, none. */
static enum { HUGE_ALWAYS, HUGE_ASKED, HUGE_NEVER } huge_pages;

/* The file names the modes and has the one in use in brackets. What can't be read counts as the
 * first: then nothing is left out. */
static void huge_pages_start(void)
{
    static const char path[] = "/sys/kernel/mm/transparent_hugepage/enabled";
    char modes[64];
    int error;
    int file = os_open(path, &error);
    if (file < 0)
        return;
    size_t length = os_read(file, modes, sizeof modes, &error); /* one call suffices */
    os_close(file);
    for (size_t i = 0; i + 1 < length; i++)
        if (modes[i] == '[' && modes[i + 1] != 'a')
            huge_pages = modes[i + 1] == 'n' ? HUGE_NEVER : HUGE_ASKED;
}

static uintptr_t random_bytes; /* their address, or 0 */
static bool secure;

static void given_take(struct os_given *to, unsigned long type, unsigned long value)
{
    if (type == AT_PAGESZ && is_power_of_two(value))
        to->page = value;
    else if (type == AT_SECURE)
        to->secure = value != 0;
    else if (type == AT_RANDOM)
        to->random = value;
    else if (type == AT_SYSINFO_EHDR)
        to->functions = value;
}

/* What libc was given, as the kernel tells it. */
static COLD void given_read(struct os_given *to)
{
    int error;
    unsigned long pairs[64][2];
    size_t bytes = os_read_file("/proc/self/auxv", pairs, sizeof pairs, &error);
    for (size_t i = 0; i < bytes / sizeof pairs[0]; i++)
        given_take(to, pairs[i][0], pairs[i][1]);
}

COLD struct os_given os_ask(void)
{
    static const unsigned long types[] = {AT_PAGESZ, AT_SECURE, AT_RANDOM, AT_SYSINFO_EHDR};
    static size_t asking; /* the thread that does, by its locks; atomic */
    size_t nobody = 0;
    ASSERT(lock_none_held());
    KEEP_ERRNO;
    struct os_given found = {.page = 4096};
    if (!__atomic_compare_exchange_n(&asking, &nobody, thread_number(), false, __ATOMIC_SEQ_CST,
                                     __ATOMIC_RELAXED)) {
        given_read(&found);
        return found;
    }
    for (unsigned i = 0; i < sizeof types / sizeof *types; i++)
        given_take(&found, types[i], getauxval(types[i]));
    __atomic_store_n(&asking, 0, __ATOMIC_SEQ_CST);
    return found;
}

void os_start(const struct os_given *given)
{
    random_bytes = given->random;
    secure = given->secure;
    os_page = given->page;
    clock_start(given->functions);
    huge_pages_start();
}

/* At `hint` if nothing is there. No flag but these: filters of system calls look at them. */
static void *map(void *hint, size_t length, int protection)
{
    long start = CALL(SYS_mmap, hint, length, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (CALL_FAILED(start))
        return NULL;
    count_mapped(length);
    return (void *)start;
}

void *os_map(size_t length) { return map(NULL, length, PROT_READ | PROT_WRITE); }

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
    void *start = map((void *)address, length, PROT_READ | PROT_WRITE);
    *occupied = start != NULL && (uintptr_t)start != address;
    if (!*occupied)
        return start;
    os_unmap(start, length);
    return NULL;
}

void *os_map_block(size_t length, size_t usable, size_t align, size_t *before, size_t *mapped)
{
    if (__builtin_add_overflow(length, align + os_page, mapped))
        return NULL;
    char *start = map(NULL, *mapped, PROT_NONE);
    if (start == NULL)
        return NULL;
    char *block = (char *)round_up((uintptr_t)start + os_page, align);
    *before = (size_t)(block - start);
    if (os_let_write(block, usable, true))
        return block;
    os_unmap(start, *mapped);
    return NULL;
}

void *os_map_guarded(size_t length)
{
    size_t before, mapped;
    return os_map_block(length, length, os_page, &before, &mapped);
}

bool os_forbid(void *start, size_t length)
{
    return CALL(SYS_mprotect, start, length, PROT_NONE) == 0;
}

bool os_let_write(void *start, size_t length, bool may)
{
    return CALL(SYS_mprotect, start, length, may ? PROT_READ | PROT_WRITE : PROT_READ) == 0;
}

bool os_unmap(void *start, size_t length)
{
    if (CALL(SYS_munmap, start, length) != 0)
        return false;
    sub_relaxed(&mapped_bytes, length);
    return true;
}

bool os_resize(void *start, size_t old_length, size_t new_length, bool *pieces)
{
    long result = CALL(SYS_mremap, start, old_length, new_length, 0);
    *pieces = result == -EFAULT;
    if (CALL_FAILED(result))
        return false;
    count_mapped(new_length - old_length);
    return true;
}

void *os_move(void *start, size_t old_length, size_t new_length)
{
    long result = CALL(SYS_mremap, start, old_length, new_length, MREMAP_MAYMOVE);
    if (CALL_FAILED(result))
        return NULL;
    count_mapped(new_length - old_length);
    return (void *)result;
}

/* What the kernel makes of a purge: nobody knows yet; it zeroes; it is refused, or answered with
 * success and not done, as by some emulators and sandboxes. */
static enum { PURGE_UNKNOWN, PURGE_ZEROES, PURGE_REFUSED } purge; /* atomic */

bool os_purge(void *start, size_t length)
{
    if (load_relaxed(&purge) == PURGE_REFUSED)
        return false;
    long failed;
    int tries = 3;
    /* The memory is free: a word may be put there for a while, to be looked for. */
    volatile size_t *word = load_relaxed(&purge) == PURGE_UNKNOWN ? start : NULL;
    bool marked = word != NULL && *word == 0;
    if (marked)
        *word = 1;
    do
        failed = CALL(SYS_madvise, start, length, MADV_DONTNEED);
    while (failed == -EAGAIN && --tries > 0);
    if (failed == -EPERM || failed == -ENOSYS)
        store_relaxed(&purge, PURGE_REFUSED);
    if (!failed && word != NULL)
        store_relaxed(&purge, *word == 0 ? PURGE_ZEROES : PURGE_REFUSED);
    if (marked && *word != 0)
        *word = 0;
    return !failed && load_relaxed(&purge) == PURGE_ZEROES;
}

/* The process itself, as a descriptor that needs none (Linux 6.14). */
#define THIS_PROCESS (-10001)

_Static_assert(sizeof(struct os_run) == sizeof(struct iovec) &&
                   offsetof(struct os_run, start) == offsetof(struct iovec, iov_base) &&
                   offsetof(struct os_run, length) == offsetof(struct iovec, iov_len),
               "a run is what the kernel takes");

void os_purge_runs(struct os_run *runs, size_t n)
{
    static bool refused; /* atomic: an older kernel says so each time */
    bool at_once = n > 1 && policy.extra_calls && !load_relaxed(&refused) &&
                   load_relaxed(&purge) == PURGE_ZEROES;
    long bytes = at_once ? CALL(SYS_process_madvise, THIS_PROCESS, runs, n, MADV_DONTNEED, 0) : -1;
    size_t gone = 0;
    for (; gone < n && bytes >= (long)runs[gone].length; gone++)
        bytes -= (long)runs[gone].length;
    bool each = true;
    for (; gone < n; gone++)
        if (!os_purge(runs[gone].start, runs[gone].length)) {
            runs[gone].length = 0;
            each = false;
        }
    /* Else it was a run that it refused, as of pages that are locked. */
    if (at_once && bytes < 0 && each)
        store_relaxed(&refused, true);
}

bool os_can_guard(void)
{
    void *page = os_map(os_page);
    bool can = page != NULL && os_guard_runs(&(struct os_run){page, os_page}, 1);
    if (page != NULL)
        os_unmap(page, os_page);
    return can;
}

bool os_guard_runs(struct os_run *runs, size_t n)
{
    size_t bytes = 0;
    for (size_t i = 0; i < n; i++)
        bytes += runs[i].length;
    if (n > 1 && policy.extra_calls &&
        CALL(SYS_process_madvise, THIS_PROCESS, runs, n, MADV_GUARD_INSTALL, 0) == (long)bytes)
        return true;
    bool all = true;
    for (size_t i = 0; i < n; i++)
        all &= CALL(SYS_madvise, runs[i].start, runs[i].length, MADV_GUARD_INSTALL) == 0;
    return all;
}

bool os_unguard(void *start, size_t length)
{
    return CALL(SYS_madvise, start, length, MADV_GUARD_REMOVE) == 0;
}

void os_bring_in(void *start, size_t length)
{
    static bool refused; /* atomic: by an old kernel, or by a filter */
    if (load_relaxed(&refused))
        return;
    long error = CALL(SYS_madvise, start, length, MADV_POPULATE_WRITE);
    if (error == -EINVAL || error == -EPERM || error == -ENOSYS || error == -EACCES)
        store_relaxed(&refused, true);
}

bool os_huge_pages(void *start, size_t length)
{
    return huge_pages != HUGE_NEVER && CALL(SYS_madvise, start, length, MADV_HUGEPAGE) == 0;
}

void os_small_pages(void *start, size_t length, bool asked)
{
    if (huge_pages == HUGE_NEVER || (huge_pages == HUGE_ASKED && !asked))
        return;
    CALL(SYS_madvise, start, length, MADV_NOHUGEPAGE);
}

void os_name(void *start, size_t length, const char *name)
{
    static bool refused; /* atomic: a kernel without names says so each time */
    if (!policy.extra_calls || load_relaxed(&refused))
        return;
    if (CALL(SYS_prctl, PR_SET_VMA, PR_SET_VMA_ANON_NAME, start, length, name) != 0)
        store_relaxed(&refused, true);
}

/* Where getrandom is forbidden: from the 16 random bytes that the kernel gave the program at its
 * start, each time another number, and none from which they can be known. */
static COLD uint64_t random_given(void)
{
    static uint64_t calls;
    const void *bytes = (const void *)random_bytes; /* at any address */
    uint64_t random[2];
    uint64_t number = (uintptr_t)&number >> 4; /* where the stack is, which is random too */
    unsigned __int128 product = number + ++calls;
    if (bytes != NULL) {
        memcpy(random, bytes, sizeof random);
        product = (product * MIXED_STEP + random[0]) * (random[1] | 1);
    }
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

uint64_t os_random(void)
{
    uint64_t number;
    if (CALL(SYS_getrandom, &number, sizeof number, 1 /* GRND_NONBLOCK */) != sizeof number)
        number = random_given();
    return number;
}

unsigned os_cpus(void)
{
    enum { SEEN_WORDS = 16 };
    static unsigned long seen[SEEN_WORDS]; /* numbers of CPUs, modulo 1,024 */
    unsigned long set[8192 / (8 * sizeof(unsigned long))];
    long bytes = CALL(SYS_sched_getaffinity, 0, sizeof set, set);
    for (long i = 0; i < bytes / (long)sizeof set[0]; i++)
        seen[(unsigned long)i % SEEN_WORDS] |= set[i];
    unsigned cpus = 0;
    for (unsigned i = 0; i < SEEN_WORDS; i++)
        cpus += count_bits(seen[i]);
    return cpus > 0 ? cpus : 1;
}

bool os_single_threaded(void)
{
#ifdef HAS_SINGLE_THREADED
    return __libc_single_threaded;
#else
    /* The kernel counts threads as links of this folder, in addition to the two of any folder. */
    struct stat threads;
    return CALL(SYS_newfstatat, AT_FDCWD, "/proc/self/task", &threads, 0) == 0 &&
           threads.st_nlink == 3;
#endif
}

void os_let_watch(void)
{
    CALL(SYS_prctl, PR_SET_PTRACER,
         PR_SET_PTRACER_ANY); /* an error where the kernel has no such rule */
}

void os_thread_name(const char *name)
{
    if (policy.extra_calls)
        CALL(SYS_prctl, PR_SET_NAME, name);
}

void os_thread_named(char name[16])
{
    int error;
    /* A filter may forbid prctl. */
    size_t bytes = os_read_file("/proc/thread-self/comm", name, 16, &error);
    name[bytes > 0 ? bytes - 1 : 0] = '\0'; /* in place of the line feed */
}

void os_wait(int *word, int value, size_t milliseconds)
{
    struct timespec time = {(time_t)(milliseconds / 1000), (long)(milliseconds % 1000) * 1000000};
    CALL(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, milliseconds != 0 ? &time : NULL, NULL, 0);
}

void os_wake(int *word) { CALL(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0); }

#ifdef __GLIBC__
int __register_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void), void *dso);
#endif

void os_at_fork(void (*prepare)(void), void (*parent)(void), void (*child)(void))
{
    ASSERT(lock_none_held());
#ifdef __GLIBC__
    /* What pthread_atfork registers goes with the object that it is called from, at that object's
     * end. Other objects may end, and fork, after it. */
    __register_atfork(prepare, parent, child, NULL);
#else
    pthread_atfork(prepare, parent, child);
#endif
}

void os_at_end(void (*end)(void))
{
    ASSERT(lock_none_held());
    atexit(end);
}

/* With it C++ has the destructors of a thread's variables called. */
int thread_atexit(void (*end)(void *), void *with, void *of) __asm__("__cxa_thread_atexit_impl")
    __attribute__((weak));

void os_at_thread_end(void (*end)(void *))
{
    static int of_this_module;
    ASSERT(lock_none_held());
    if (thread_atexit != NULL)
        thread_atexit(end, NULL, &of_this_module);
}

unsigned os_thread_id(void) { return (unsigned)CALL(SYS_gettid); }

void os_print_error(const char *words, size_t length)
{
    while (length > 0) {
        long written = call_write(STDERR_FILENO, words, length);
        if (written == -EINTR)
            continue;
        if (written <= 0)
            break;
        words += written;
        length -= (size_t)written;
    }
}

int os_open(const char *path, int *error)
{
    int flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
    long file = CALL(SYS_openat, AT_FDCWD, path, flags);
    *error = file < 0 ? (int)-file : 0;
    return file < 0 ? -1 : (int)file;
}

size_t os_read(int file, void *buffer, size_t room, int *error)
{
    long got;
    do
        got = call_read(file, buffer, room);
    while (got == -EINTR);
    *error = got < 0 ? (int)-got : 0;
    return got < 0 ? 0 : (size_t)got;
}

size_t os_address_space(void)
{
    static const int each[] = {RLIMIT_AS, RLIMIT_DATA};
    size_t least = SIZE_MAX;
    struct rlimit most;
    for (unsigned i = 0; i < 2; i++)
        if (CALL(SYS_prlimit64, 0, each[i], NULL, &most) == 0)
            least = smaller(least, most.rlim_cur);
    return least;
}

#define INTERRUPTED_MOST 1000 /* times in a row that a signal may break the call off */

/* To write, with room for so many bytes: the file's number, or the negative one of the error. */
static int open_with_room(const char *path, int flags, size_t length)
{
    struct rlimit most;
    if (CALL(SYS_prlimit64, 0, RLIMIT_FSIZE, NULL, &most) == 0 && most.rlim_cur < length)
        return -EFBIG; /* else a signal comes */
    int file = (int)CALL(SYS_openat, AT_FDCWD, path, flags | O_RDWR | O_CLOEXEC, 0600);
    if (file < 0)
        return file;
    long failed = -EINTR;
    for (unsigned tries = 0; failed == -EINTR && tries < INTERRUPTED_MOST; tries++)
        failed = CALL(SYS_fallocate, file, 0, 0, length);
    if (failed == 0)
        return file;
    call_close(file);
    if (flags & O_CREAT)
        call_unlink(path);
    return (int)failed;
}

void *os_map_new_file(const char *path, size_t length, size_t most, int *error)
{
    int file = open_with_room(path, O_CREAT | O_EXCL, length);
    *error = file < 0 ? -file : 0;
    if (file < 0)
        return NULL;
    long start = CALL(SYS_mmap, NULL, most, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    call_close(file);
    if (!CALL_FAILED(start))
        return (void *)start;
    *error = (int)-start;
    call_unlink(path);
    return NULL;
}

int os_grow_file(const char *path, size_t length)
{
    int file = open_with_room(path, 0, length);
    if (file < 0)
        return -file;
    call_close(file);
    return 0;
}

void os_leave_file(void *start, size_t length, size_t most)
{
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
    if (!CALL_FAILED(CALL(SYS_mmap, start, length, PROT_READ | PROT_WRITE, flags, -1, 0)))
        CALL(SYS_munmap, (char *)start + length, most - length);
}

void os_close(int file) { call_close(file); }

bool os_secure(void) { return secure; }

char **os_environment(void) { return environ; }

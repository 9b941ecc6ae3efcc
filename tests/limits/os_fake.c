/* os_linux.c with its system calls replaced by other functions. */
#define _GNU_SOURCE
#include "os_fake.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/text.h"
#include "os/calls.h"

#ifndef SYS_process_madvise
#define SYS_process_madvise 440
#endif
#ifndef PR_SET_VMA
#define PR_SET_VMA 0x53564d41
#endif

#define MAYBE_UNUSED __attribute__((unused)) /* the layer need not make every call */

struct os_fake os_fake;

const char *const fake_names[FAKE_ANY + 1] = {
#define FAKE_NAME(name, error) #name,
    FAKE_CALLS(FAKE_NAME)
#undef FAKE_NAME
        "any",
};

static const int usual_errors[FAKE_ANY] = {
#define FAKE_ERROR(name, error) error,
    FAKE_CALLS(FAKE_ERROR)
#undef FAKE_ERROR
};

static _Noreturn void wrong(const char *call, const char *what, const void *start, size_t length)
{
    char line[256];
    struct text text = text_of(line, sizeof line, "os_fake: %s of %zu bytes at %#lx: %s\n", call,
                               length, (uintptr_t)start, what);
    if (write(STDERR_FILENO, text.start, text.used) < 0)
        _exit(99);
    abort();
}

/* ---- what is refused ---- */

__attribute__((noinline)) void fake_refuses(enum fake_call call, int error)
{
    (void)call;
    add_relaxed(&os_fake.failed, (size_t)1);
    errno = error;
}

static bool refused(enum fake_call call)
{
    size_t number = add_relaxed(&os_fake.calls[call], (size_t)1);
    size_t any = add_relaxed(&os_fake.calls[FAKE_ANY], (size_t)1);
    if (os_fake.refused >> call & 1) {
        fake_refuses(call, os_fake.refused_error);
        return true;
    }
    if (os_fake.fails == FAKE_ANY)
        number = any;
    else if (os_fake.fails != call)
        return false;
    if (number < os_fake.first || number > os_fake.last)
        return false;
    fake_refuses(call, os_fake.error != 0 ? os_fake.error : usual_errors[call]);
    return true;
}

/* ---- what is mapped ---- */

#define RANGES_MOST 16384

struct range {
    uintptr_t start, end;
};

/* Sorted, apart from each other. */
struct ranges {
    size_t count;
    struct range list[RANGES_MOST];
};

/* Not a lock of the layer's, which a thread that forks passes. */
static pthread_mutex_t ranges_lock = PTHREAD_MUTEX_INITIALIZER;
static struct ranges mapped, writable; /* lock: ranges */

static void ranges_hold(void) { pthread_mutex_lock(&ranges_lock); }
static void ranges_release(void) { pthread_mutex_unlock(&ranges_lock); }

/* Before the allocator's own handlers are registered: so it is held inside of all its locks. */
__attribute__((constructor)) static void ranges_survive_fork(void)
{
    pthread_atfork(ranges_hold, ranges_release, ranges_release);
}

/* The first range that ends behind `address`. */
static size_t range_at(const struct ranges *r, uintptr_t address)
{
    size_t low = 0;
    size_t high = r->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (r->list[middle].end <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void range_replace(struct ranges *r, size_t at, size_t old, const struct range *by, size_t n)
{
    if (r->count - old + n > RANGES_MOST)
        wrong("mmap", "more mappings than this table holds", NULL, 0);
    memmove(&r->list[at + n], &r->list[at + old], (r->count - at - old) * sizeof *by);
    memcpy(&r->list[at], by, n * sizeof *by);
    r->count = r->count - old + n;
}

/* Bytes of [start, end) that are in no range yet, or that were in one. */
static size_t range_remove(struct ranges *r, uintptr_t start, uintptr_t end)
{
    size_t at = range_at(r, start);
    size_t old = 0;
    size_t n = 0;
    size_t bytes = 0;
    struct range rest[2];
    while (at + old < r->count && r->list[at + old].start < end) {
        struct range one = r->list[at + old++];
        uintptr_t from = one.start > start ? one.start : start;
        uintptr_t to = one.end < end ? one.end : end;
        bytes += to - from;
        if (one.start < start)
            rest[n++] = (struct range){one.start, start};
        if (one.end > end)
            rest[n++] = (struct range){end, one.end};
    }
    if (old > 0)
        range_replace(r, at, old, rest, n);
    return bytes;
}

static size_t range_add(struct ranges *r, uintptr_t start, uintptr_t end)
{
    size_t known = range_remove(r, start, end);
    size_t at = range_at(r, start);
    struct range all = {start, end};
    size_t old = 0;
    if (at > 0 && r->list[at - 1].end == start)
        all.start = r->list[--at].start, old++;
    if (at + old < r->count && r->list[at + old].start == end)
        all.end = r->list[at + old++].end;
    range_replace(r, at, old, &all, 1);
    return end - start - known;
}

static size_t range_bytes(const struct ranges *r, uintptr_t start, uintptr_t end)
{
    size_t bytes = 0;
    for (size_t at = range_at(r, start); at < r->count && r->list[at].start < end; at++) {
        uintptr_t from = r->list[at].start > start ? r->list[at].start : start;
        uintptr_t to = r->list[at].end < end ? r->list[at].end : end;
        bytes += to - from;
    }
    return bytes;
}

static void note_mapped(const void *start, size_t length, bool write)
{
    uintptr_t from = (uintptr_t)start;
    add_relaxed(&os_fake.mapped, range_add(&mapped, from, from + length));
    if (write)
        add_relaxed(&os_fake.committed, range_add(&writable, from, from + length));
    else
        sub_relaxed(&os_fake.committed, range_remove(&writable, from, from + length));
}

static void note_unmapped(const void *start, size_t length)
{
    uintptr_t from = (uintptr_t)start;
    sub_relaxed(&os_fake.mapped, range_remove(&mapped, from, from + length));
    sub_relaxed(&os_fake.committed, range_remove(&writable, from, from + length));
}

/* ---- what comes in ---- */

static size_t page(void)
{
    return os_fake.page != 0 ? os_fake.page : (size_t)sysconf(_SC_PAGESIZE);
}

static void check_pages(const char *call, const void *start, size_t length)
{
    if (((uintptr_t)start | length) % page() != 0)
        wrong(call, "not a multiple of the page", start, length);
}

/* The address map and the table of offsets are of the program's own file. */
extern char __executable_start, _end;

static bool is_static(const void *start, size_t length)
{
    return (uintptr_t)start >= (uintptr_t)&__executable_start &&
           (uintptr_t)start + length <= (uintptr_t)&_end;
}

static void check_ours(const char *call, const void *start, size_t length)
{
    check_pages(call, start, length);
    uintptr_t from = (uintptr_t)start;
    if (is_static(start, length))
        return;
    if (length == 0 || range_bytes(&mapped, from, from + length) != length)
        wrong(call, "not all of it was mapped by this layer", start, length);
}

/* Whether `more` writable bytes are too many. */
static bool beyond_commit(size_t more)
{
    if (os_fake.commit_limit == 0 ||
        load_relaxed(&os_fake.committed) + more <= os_fake.commit_limit)
        return false;
    errno = ENOMEM;
    return true;
}

/* At a multiple of a page that is larger than the kernel's. */
static void *map_anywhere(size_t length, int protection, int flags)
{
    if (os_fake.page == 0)
        return mmap(NULL, length, protection, flags, -1, 0);
    char *wide = mmap(NULL, length + page(), protection, flags, -1, 0);
    if (wide == MAP_FAILED)
        return wide;
    char *start = (char *)round_up((uintptr_t)wide, page());
    size_t before = (size_t)(start - wide);
    size_t after = page() - before;
    if ((before > 0 && munmap(wide, before) != 0) ||
        (after > 0 && munmap(start + length, after) != 0))
        wrong("munmap", "the real kernel refused", wide, length);
    return start;
}

/* ---- the calls ---- */

static void *fake_mmap(void *wanted, size_t length, int protection, int flags, int file, off_t at)
{
    check_pages("mmap", wanted, length);
    if (refused(FAKE_mmap))
        return MAP_FAILED;
    if (os_fake.bits != 0 && ((uintptr_t)wanted + length - 1) >> os_fake.bits != 0)
        wanted = NULL; /* no kernel follows such a hint */
    bool write = (protection & PROT_WRITE) != 0;
    ranges_hold();
    void *start = MAP_FAILED;
    if (!write || !beyond_commit(length)) {
        if (wanted != NULL)
            start = mmap(wanted, length, protection, flags, file, at);
        if (wanted != NULL && start != wanted && start != MAP_FAILED)
            munmap(start, length);
        if (wanted == NULL || start != wanted)
            start = map_anywhere(length, protection, flags);
        if (start != MAP_FAILED)
            note_mapped(start, length, write);
    }
    ranges_release();
    return start;
}

static bool any_page(char *start, size_t length)
{
    static unsigned char in[4096]; /* lock: ranges */
    const size_t step = sizeof in * (size_t)sysconf(_SC_PAGESIZE);
    for (size_t at = 0; at < length; at += step) {
        size_t part = length - at < step ? length - at : step;
        memset(in, 0, sizeof in);
        if (mincore(start + at, part, in) != 0)
            return true;
        for (size_t i = 0; i < sizeof in; i++)
            if (in[i] != 0)
                return true;
    }
    return false;
}

static int fake_munmap(void *start, size_t length)
{
    bool fails = refused(FAKE_munmap);
    int error = errno;
    int failed = -1;
    ranges_hold();
    check_ours("munmap", start, length);
    if (!fails)
        failed = munmap(start, length);
    else if (!any_page(start, length))
        add_relaxed(&os_fake.untouched, length);
    if (!failed)
        note_unmapped(start, length);
    ranges_release();
    if (fails)
        errno = error;
    return failed;
}

static int fake_mprotect(void *start, size_t length, int protection)
{
    if (refused(FAKE_mprotect))
        return -1;
    bool write = (protection & PROT_WRITE) != 0;
    uintptr_t from = (uintptr_t)start;
    ranges_hold();
    check_ours("mprotect", start, length);
    int failed = -1;
    if (!write || !beyond_commit(length - range_bytes(&writable, from, from + length))) {
        failed = mprotect(start, length, protection);
        if (!failed && !is_static(start, length))
            note_mapped(start, length, write);
    }
    ranges_release();
    return failed;
}

static void *fake_mremap(void *start, size_t old_length, size_t new_length, int flags)
{
    if (refused(FAKE_mremap))
        return MAP_FAILED;
    ranges_hold();
    check_ours("mremap", start, old_length);
    check_pages("mremap", start, new_length);
    void *result = MAP_FAILED;
    if (new_length <= old_length || !beyond_commit(new_length - old_length)) {
        if ((flags & MREMAP_MAYMOVE) == 0 || os_fake.page == 0) {
            result = mremap(start, old_length, new_length, flags);
        } else {
            void *target = map_anywhere(new_length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS);
            if (target != MAP_FAILED)
                result = mremap(start, old_length, new_length, flags | MREMAP_FIXED, target);
        }
    }
    if (result != MAP_FAILED) {
        note_unmapped(start, old_length);
        note_mapped(result, new_length, true);
    }
    ranges_release();
    return result;
}

static int fake_madvise(void *start, size_t length, int advice)
{
    if (refused(FAKE_madvise))
        return -1;
    /* Kept until it is done: another thread could have unmapped it. */
    ranges_hold();
    check_ours("madvise", start, length);
    int failed = madvise(start, length, advice);
    ranges_release();
    return failed;
}

static long fake_prctl(const long a[])
{
    if (refused(FAKE_prctl))
        return -1;
    if (a[0] != PR_SET_VMA)
        return syscall(SYS_prctl, a[0], a[1], a[2], a[3], a[4]);
    /* Kernels without names refuse the first, and then none is tried any more. */
    check_pages("prctl", (void *)a[2], (size_t)a[3]); // NOLINT(performance-no-int-to-ptr)
    return 0;
}

static unsigned long fake_getauxval(unsigned long type)
{
    if (type == AT_SYSINFO_EHDR)
        return 0; /* the clock is asked for by a call, which can be refused */
    return type == AT_PAGESZ ? page() : getauxval(type);
}

static long fake_process_madvise(const long a[])
{
    if (refused(FAKE_process_madvise))
        return -1;
    const struct iovec *runs = (const struct iovec *)a[1]; // NOLINT(performance-no-int-to-ptr)
    ranges_hold();
    for (long i = 0; i < a[2]; i++)
        check_ours("process_madvise", runs[i].iov_base, runs[i].iov_len);
    long done = syscall(SYS_process_madvise, a[0], a[1], a[2], a[3], a[4]);
    ranges_release();
    return done;
}

/* Files about control groups lie below the tests' own root. */
static long fake_open(const long a[])
{
    const char *path = (const char *)a[1]; // NOLINT(performance-no-int-to-ptr)
    char moved[8192];
    struct text text;
    text_init(&text, moved, sizeof moved);
    if (os_fake.root != NULL && strstr(path, "/cgroup") != NULL) {
        text_add(&text, os_fake.root);
        text_add(&text, path);
        path = text.start;
    }
    return syscall(SYS_openat, a[0], path, a[2], a[3]);
}

static long fake_call(long number, const long a[6])
{
    void *start = (void *)a[0]; // NOLINT(performance-no-int-to-ptr)
    size_t length = (size_t)a[1];
    switch (number) {
    case SYS_mmap:
        return (long)fake_mmap(start, length, (int)a[2], (int)a[3], (int)a[4], a[5]);
    case SYS_munmap:
        return fake_munmap(start, length);
    case SYS_mprotect:
        return fake_mprotect(start, length, (int)a[2]);
    case SYS_mremap:
        return (long)fake_mremap(start, length, (size_t)a[2], (int)a[3]);
    case SYS_madvise:
        return fake_madvise(start, length, (int)a[2]);
    case SYS_prctl:
        return fake_prctl(a);
    case SYS_process_madvise:
        return fake_process_madvise(a);
    case SYS_openat:
        return fake_open(a);
    case SYS_getrandom:
        return refused(FAKE_getrandom) ? -1 : syscall(number, a[0], a[1], a[2]);
    case SYS_sched_getaffinity:
        return refused(FAKE_affinity) ? -1 : syscall(number, a[0], a[1], a[2]);
    case SYS_clock_gettime:
        return refused(FAKE_clock_gettime) ? -1 : syscall(number, a[0], a[1]);
    default:
        return syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
    }
}

/* In the place of the layer's own instruction: the negative number of the error. */
static long fake_kernel(long number, long a, long b, long c, long d, long e, long f)
{
    const long all[] = {a, b, c, d, e, f};
    int before = errno;
    long result = fake_call(number, all);
    if (result == -1)
        result = -errno;
    errno = before;
    return result;
}

static MAYBE_UNUSED int fake_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                                            void *(*body)(void *), void *argument)
{
    return refused(FAKE_pthread_create) ? errno
                                        : pthread_create(thread, attributes, body, argument);
}

#define call_kernel fake_kernel
#define getauxval fake_getauxval
#define pthread_create fake_pthread_create

#include "os/os_linux.c" // NOLINT(bugprone-suspicious-include)

#include "os/clock_linux.c" // NOLINT(bugprone-suspicious-include)

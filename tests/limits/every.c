/* Makes every call of hakmem, and sets every option, under a filter that kills the process for what
 * docs/contract.md doesn't list. With threads: two that sleep, and one that allocates and frees.
 *
 *   every list
 *       writes the names of all functions that it calls, and of all options
 *   every RULES THREADS NAME...
 *       calls each function, or sets each option to its bounds and its default; each answer is a
 *       line "NAME VALUE ANSWER". With threads it ends when the scavenger has given memory back.
 *   every RULES THREADS serve
 *       allocates and frees until it is killed
 *
 * RULES are those of rules.h, or "none". What it says it writes to descriptor 9, and nothing else
 * does. */
#define _GNU_SOURCE
#include "rules.h"

#include <errno.h>
#include <fcntl.h>
#include <hakmem/hakmem.h>
#include <malloc.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define KiB ((uint64_t)1024)
#define MiB (1024 * KiB)
#define GiB (1024 * MiB)
#define AUTO UINT64_MAX

enum { SAID = 9, SLEEPERS = 2, BLOCKS = 300 };

static void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void say(const char *format, ...)
{
    char line[256];
    va_list values;
    va_start(values, format);
    int length = vsnprintf(line, sizeof line, format, values);
    va_end(values);
    if (write(SAID, line, (size_t)length) != length)
        _exit(3);
}

/* ---- work ---- */

static void use(void *p)
{
    if (p != NULL)
        memset(p, 1, 1);
    free(p);
}

/* Blocks of all kinds, and what grows; a limit that was set may refuse any. */
static void work(void)
{
    static const size_t sizes[] = {24, 500, 3000, 20000, 50000, 300000, 3 << 20};
    static __thread void *blocks[BLOCKS];
    for (unsigned kind = 0; kind < sizeof sizes / sizeof *sizes; kind++) {
        unsigned n = sizes[kind] > 2 << 20 ? 2 : sizes[kind] > 40000 ? 8 : BLOCKS;
        for (unsigned i = 0; i < n; i++)
            if ((blocks[i] = malloc(sizes[kind])) != NULL)
                memset(blocks[i], 1, sizes[kind]);
        for (unsigned i = 0; i < n; i++)
            free(blocks[i]);
    }
    void *grows = malloc(100);
    for (size_t n = 100; n < 8 << 20 && grows != NULL; n *= 3) {
        void *more = realloc(grows, n);
        if (more == NULL)
            break;
        grows = more;
    }
    use(grows);
}

/* What is kept goes back first, and then there is no memory all the same. */
static void ask_for_too_much(void) { use(malloc((size_t)1 << 46)); }

static void rest(long milliseconds)
{
    struct timespec time = {0, milliseconds * 1000000};
    nanosleep(&time, NULL);
}

static pthread_barrier_t ready, rested, never;

static void *sleeper(void *unused)
{
    work();
    pthread_barrier_wait(&ready);
    pthread_barrier_wait(&never);
    return unused;
}

static volatile bool at_rest;

static void *worker(void *unused)
{
    work();
    pthread_barrier_wait(&ready);
    while (!at_rest) {
        work();
        rest(10);
    }
    pthread_barrier_wait(&rested);
    pthread_barrier_wait(&never);
    return unused;
}

static void start_threads(void)
{
    pthread_t thread;
    pthread_barrier_init(&ready, NULL, SLEEPERS + 2);
    pthread_barrier_init(&rested, NULL, 2);
    pthread_barrier_init(&never, NULL, SLEEPERS + 2);
    for (unsigned i = 0; i <= SLEEPERS; i++)
        if (pthread_create(&thread, NULL, i < SLEEPERS ? sleeper : worker, NULL) != 0)
            _exit(3);
    pthread_barrier_wait(&ready);
}

static bool scavenger_returns(void)
{
    at_rest = true;
    pthread_barrier_wait(&rested);
    hakmem_option_set("soft_limit_bytes", 0);
    return rules_scavenger_returns(work);
}

/* ---- functions ---- */

static FILE *stream; /* into memory */
static int file;

static void ignore(void *argument) { (void)argument; }

static void *volatile block;
static size_t volatile number;

void *__libc_malloc(size_t n);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *p, size_t n);
void __libc_free(void *p);
void *__libc_memalign(size_t align, size_t n);
void *__libc_valloc(size_t n);
void *__libc_pvalloc(size_t n);
void *__libc_reallocarray(void *p, size_t count, size_t size);
struct mallinfo __libc_mallinfo(void);
int __libc_mallopt(int parameter, int value);
int __posix_memalign(void **result, size_t align, size_t n);
void cfree(void *p);
void free_sized(void *p, size_t n);
void free_aligned_sized(void *p, size_t align, size_t n);
size_t malloc_object_size(const void *p);

void *mallocx(size_t n, int flags);
void *rallocx(void *p, size_t n, int flags);
size_t xallocx(void *p, size_t n, size_t extra, int flags);
size_t sallocx(const void *p, int flags);
size_t nallocx(size_t n, int flags);
void dallocx(void *p, int flags);
void sdallocx(void *p, size_t n, int flags);
int mallctl(const char *name, void *old, size_t *bytes, void *new, size_t new_bytes);
int mallctlnametomib(const char *name, size_t *mib, size_t *length);
int mallctlbymib(const size_t *mib, size_t length, void *old, size_t *bytes, void *new,
                 size_t new_bytes);
void malloc_stats_print(void (*write)(void *, const char *), void *to, const char *options);

/* What programs read and order by jemalloc's names. */
static void control_heap(void)
{
    size_t bytes = sizeof(size_t), value = 1;
    static const char *const orders[] = {"arena.0.purge", "arena.0.decay", "thread.tcache.flush"};
    static const char *const figures[] = {"stats.allocated", "stats.resident", "epoch"};
    mallctl("epoch", &value, &bytes, &value, sizeof value);
    for (unsigned i = 0; i < 3; i++)
        mallctl(figures[i], &value, &bytes, NULL, 0);
    for (unsigned i = 0; i < 3; i++)
        number = (size_t)mallctl(orders[i], NULL, NULL, NULL, 0);
    mallctl("prof.active", NULL, NULL, &(bool){true}, sizeof(bool));
    mallctl("prof.active", NULL, NULL, &(bool){false}, sizeof(bool));
    number = (size_t)mallctl("prof.dump", NULL, NULL, NULL, 0);
}

static void control_by_number(void)
{
    size_t mib[6], length = 6, value = 0, bytes = sizeof value;
    mallctlnametomib("stats.allocated", mib, &length);
    number = (size_t)mallctlbymib(mib, length, &value, &bytes, NULL, 0);
}

#define ALIGNED(function)                       \
    do {                                        \
        void *p = NULL;                         \
        number = (size_t)function(&p, 64, 100); \
        use(p);                                 \
    } while (0)

/* Each is tried with blocks of some kinds. */
#define FUNCTIONS(F)                                                                               \
    F(malloc, use(malloc(n)))                                                                      \
    F(calloc, use(calloc(1, n)))                                                                   \
    F(realloc, use(realloc(malloc(10), n)))                                                        \
    F(free, free(malloc(n)))                                                                       \
    F(cfree, cfree(malloc(n)))                                                                     \
    F(free_sized, free_sized(malloc(n), n))                                                        \
    F(free_aligned_sized, free_aligned_sized(aligned_alloc(64, n), 64, n))                         \
    F(reallocarray, use(reallocarray(malloc(10), 1, n)))                                           \
    F(strdup, use(strdup("a text")))                                                               \
    F(strndup, use(strndup("a text", 3)))                                                          \
    F(aligned_alloc, use(aligned_alloc(64, n)))                                                    \
    F(memalign, use(memalign(64, n)))                                                              \
    F(posix_memalign, ALIGNED(posix_memalign))                                                     \
    F(valloc, use(valloc(n)))                                                                      \
    F(pvalloc, use(pvalloc(n)))                                                                    \
    F(malloc_usable_size, block = malloc(n); number = malloc_usable_size(block); free(block))      \
    F(malloc_object_size, block = malloc(n); number = malloc_object_size(block); free(block))      \
    F(malloc_trim, number = (size_t)malloc_trim(0))                                                \
    F(mallinfo, number = (size_t)mallinfo().uordblks)                                              \
    F(mallinfo2, number = mallinfo2().uordblks)                                                    \
    F(malloc_info, number = (size_t)malloc_info(0, stream))                                        \
    F(malloc_stats, malloc_stats())                                                                \
    F(mallopt, number = (size_t)mallopt(M_TRIM_THRESHOLD, 1 << 20))                                \
    F(__libc_malloc, use(__libc_malloc(n)))                                                        \
    F(__libc_calloc, use(__libc_calloc(1, n)))                                                     \
    F(__libc_realloc, use(__libc_realloc(malloc(10), n)))                                          \
    F(__libc_free, __libc_free(malloc(n)))                                                         \
    F(__libc_memalign, use(__libc_memalign(64, n)))                                                \
    F(__libc_valloc, use(__libc_valloc(n)))                                                        \
    F(__libc_pvalloc, use(__libc_pvalloc(n)))                                                      \
    F(__libc_reallocarray, use(__libc_reallocarray(malloc(10), 1, n)))                             \
    F(__libc_mallinfo, number = (size_t)__libc_mallinfo().uordblks)                                \
    F(__libc_mallopt, number = (size_t)__libc_mallopt(M_TRIM_THRESHOLD, 1 << 20))                  \
    F(__posix_memalign, ALIGNED(__posix_memalign))                                                 \
    F(mallocx, use(mallocx(n, 0x46)))                                                              \
    F(rallocx, use(rallocx(malloc(10), n, 0)))                                                     \
    F(xallocx, block = malloc(n); number = xallocx(block, n, 0, 0); free(block))                   \
    F(sallocx, block = malloc(n); number = sallocx(block, 0); free(block))                         \
    F(nallocx, number = nallocx(n, 0))                                                             \
    F(dallocx, dallocx(malloc(n), 0))                                                              \
    F(sdallocx, sdallocx(malloc(n), n, 0))                                                         \
    F(mallctl, control_heap())                                                                     \
    F(mallctlnametomib, control_by_number())                                                       \
    F(mallctlbymib, control_by_number())                                                           \
    F(malloc_stats_print, malloc_stats_print(NULL, NULL, ""))                                      \
    F(hakmem_malloc, use(hakmem_malloc(n)))                                                        \
    F(hakmem_calloc, use(hakmem_calloc(1, n)))                                                     \
    F(hakmem_realloc, use(hakmem_realloc(malloc(10), n)))                                          \
    F(hakmem_free, hakmem_free(malloc(n)))                                                         \
    F(hakmem_free_sized, hakmem_free_sized(malloc(n), n))                                          \
    F(hakmem_free_aligned_sized, hakmem_free_aligned_sized(memalign(64, n), 64, n))                \
    F(hakmem_reallocarray, use(hakmem_reallocarray(malloc(10), 1, n)))                             \
    F(hakmem_aligned_alloc, use(hakmem_aligned_alloc(64, n)))                                      \
    F(hakmem_memalign, use(hakmem_memalign(64, n)))                                                \
    F(hakmem_posix_memalign, ALIGNED(hakmem_posix_memalign))                                       \
    F(hakmem_valloc, use(hakmem_valloc(n)))                                                        \
    F(hakmem_pvalloc, use(hakmem_pvalloc(n)))                                                      \
    F(hakmem_malloc_usable_size, block = malloc(n); number = hakmem_malloc_usable_size(block);     \
      free(block))                                                                                 \
    F(hakmem_object_size, block = malloc(n); number = hakmem_object_size(block); free(block))      \
    F(hakmem_malloc_trim, number = (size_t)hakmem_malloc_trim(0))                                  \
    F(hakmem_mallinfo, number = (size_t)hakmem_mallinfo().uordblks)                                \
    F(hakmem_mallinfo2, number = hakmem_mallinfo2().uordblks)                                      \
    F(hakmem_malloc_info, number = (size_t)hakmem_malloc_info(0, stream))                          \
    F(hakmem_malloc_stats, hakmem_malloc_stats())                                                  \
    F(hakmem_mallopt, number = (size_t)hakmem_mallopt(M_TRIM_THRESHOLD, 1 << 20))                  \
    F(hakmem_option, uint64_t value; number = (size_t)hakmem_option("learn", &value))              \
    F(hakmem_option_set, number = (size_t)hakmem_option_set("compact", n % 2))                     \
    F(hakmem_good_size, number = hakmem_good_size(n))                                              \
    F(hakmem_purge, number = hakmem_purge())                                                       \
    F(hakmem_on_soft_limit, hakmem_on_soft_limit(ignore, NULL);                                    \
      hakmem_option_set("soft_limit_bytes", n))                                                    \
    F(hakmem_defrag_hint, block = malloc(n); number = (size_t)hakmem_defrag_hint(block);           \
      free(block))                                                                                 \
    F(hakmem_defrag_malloc, use(hakmem_defrag_malloc(n)))                                          \
    F(hakmem_defrag_free, hakmem_defrag_free(malloc(n)))                                           \
    F(hakmem_defrag_gain, number = hakmem_defrag_gain())                                           \
    F(hakmem_stats, struct hakmem_stats stats; number = hakmem_stats(&stats, sizeof stats))        \
    F(hakmem_sheet, number = (size_t)hakmem_sheet(file, (int)(n % 2)))                             \
    F(hakmem_mark, hakmem_mark(n % 2 == 0 ? "even" : "odd"))                                       \
    F(hakmem_profile_start, number = (size_t)hakmem_profile_start())                               \
    F(hakmem_profile_stop, hakmem_profile_start(); work(); number = (size_t)hakmem_profile_stop()) \
    F(hakmem_profile_write, hakmem_profile_start(); work();                                        \
      number = (size_t)hakmem_profile_write(file))                                                 \
    F(hakmem_malloc_at, use(hakmem_malloc_at(n, "here")))                                          \
    F(hakmem_calloc_at, use(hakmem_calloc_at(1, n, "here")))                                       \
    F(hakmem_realloc_at, use(hakmem_realloc_at(malloc(10), n, "here")))                            \
    F(hakmem_aligned_alloc_at, use(hakmem_aligned_alloc_at(64, n, "here")))                        \
    F(hakmem_version, number = hakmem_version())                                                   \
    F(hakmem_check_frees, number = (size_t)hakmem_check_frees(n % 2))                              \
    F(hakmem_check, number = (size_t)hakmem_check())

#define DEFINE(name, ...)             \
    static void call_##name(size_t n) \
    {                                 \
        (void)n;                      \
        __VA_ARGS__;                  \
    }
#pragma GCC diagnostic ignored "-Wdeprecated-declarations" /* mallinfo */
FUNCTIONS(DEFINE)

static const struct {
    const char *name;
    void (*call)(size_t n);
} functions[] = {
#define ENTRY(name, ...) {#name, call_##name},
    FUNCTIONS(ENTRY)};
#define COUNT (sizeof functions / sizeof *functions)

static bool call(const char *name)
{
    static const size_t sizes[] = {24, 4097, 40000, 300001, 3 << 20};
    for (size_t i = 0; i < COUNT; i++) {
        if (strcmp(functions[i].name, name) != 0)
            continue;
        for (size_t j = 0; j < sizeof sizes / sizeof *sizes; j++) {
            number = 0;
            functions[i].call(sizes[j]);
            say("%s %zu %zu\n", name, sizes[j], number);
            ask_for_too_much();
        }
        work();
        return true;
    }
    return false;
}

/* ---- options ---- */

static const struct {
    const char *name;
    uint64_t values[4];
} options[] = {
#define OPTION(name, type, value, least, most, help) {#name, {least, most, 1, value}},
#include "options.def"
};
#define OPTIONS (sizeof options / sizeof *options)

static bool set(const char *name)
{
    for (size_t i = 0; i < OPTIONS; i++) {
        if (strcmp(options[i].name, name) != 0)
            continue;
        for (unsigned j = 0; j < 4; j++) {
            int answer = hakmem_option_set(name, options[i].values[j]);
            say("%s %llu %d\n", name, (unsigned long long)options[i].values[j], answer);
            ask_for_too_much();
            for (unsigned turn = 0; turn < 2; turn++, rest(10))
                work();
        }
        return true;
    }
    return false;
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "list") == 0) {
        for (size_t i = 0; i < COUNT; i++)
            say("function %s\n", functions[i].name);
        for (size_t i = 0; i < OPTIONS; i++)
            say("option %s\n", options[i].name);
        return 0;
    }
    if (argc < 4)
        return 2;
    file = open("/dev/null", O_WRONLY | O_CLOEXEC);
    char *text;
    size_t length;
    stream = open_memstream(&text, &length);
    work();
    bool with_threads = strcmp(argv[2], "0") != 0;
    if (with_threads)
        start_threads();
    if (strcmp(argv[1], "none") != 0)
        rules_read(argv[1]);
    rules_apply();
    say("ready\n");
    if (strcmp(argv[3], "serve") == 0)
        for (;; rest(10))
            work();
    for (int i = 3; i < argc; i++)
        if (!call(argv[i]) && !set(argv[i]))
            _exit(2);
    if (with_threads && !scavenger_returns())
        _exit(4);
    say("done\n");
    _exit(0);
}

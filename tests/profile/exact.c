/* Counts every allocation of a program by its call stack, to compare a heap profile with. Loaded
 * before the library, so that it has malloc's names. It turns the profile on itself, from its own
 * constructor or as the program has allocated EXACT_AFTER blocks, and at the end of each process
 * writes EXACT_FOLDER/PID.exact and, at the same moment, the profile to PID.heap.
 *
 * Each line has, for all blocks and then for those in use: blocks, bytes, and the expected samples,
 * variance of the estimate of blocks, and of bytes; then the addresses to which the calls return.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <hakmem/hakmem.h>
#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <unwind.h>

#define EXPORT __attribute__((visibility("default")))
#define malloc_usable_size hakmem_malloc_usable_size
#define FRAMES_MOST 60
#define IN_PLACE_MOST ((size_t)2 << 20) /* larger ones that realloc resizes count anew */
#define SITES_MOST ((size_t)1 << 18)
#define BLOCKS_MOST ((size_t)1 << 24)

struct sum {
    double blocks, bytes, samples, blocks_variance, bytes_variance;
};

struct site {
    struct sum total, live;
    uint32_t depth, hash;
    uintptr_t frames[FRAMES_MOST];
};

struct block {
    uintptr_t p; /* 0: never used; 1: removed */
    uint32_t site;
    uint32_t cls_bytes;
    size_t n, all; /* requested now, and with all that it grew by */
};

static struct site *sites;
static struct block *blocks;
static uint32_t site_count, *site_index; /* 1 + a site's number */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long allocated, begin_after;
static enum { BEFORE, COUNTING, ENDED } state;
static double rate;
static __thread bool inside __attribute__((tls_model("initial-exec")));

struct trace {
    uint32_t depth;
    uintptr_t frames[FRAMES_MOST + 2];
};

static _Unwind_Reason_Code step(struct _Unwind_Context *context, void *data)
{
    struct trace *trace = data;
    if (trace->depth == FRAMES_MOST + 2)
        return _URC_END_OF_STACK;
    int interrupted; /* by a signal: not the address to which a call returns */
    uintptr_t address = _Unwind_GetIPInfo(context, &interrupted);
    if (address == 0)
        return _URC_END_OF_STACK;
    address += interrupted != 0;
    trace->frames[trace->depth++] = address;
    return _URC_NO_REASON;
}

static uint32_t site_of(const uintptr_t *frames, uint32_t depth)
{
    uint64_t hash = depth;
    for (uint32_t i = 0; i < depth; i++)
        hash = (hash ^ frames[i]) * 0x9e3779b97f4a7c15u;
    hash ^= hash >> 32;
    for (size_t at = hash % (2 * SITES_MOST);; at = (at + 1) % (2 * SITES_MOST)) {
        uint32_t found = site_index[at];
        if (found == 0) {
            if (site_count == SITES_MOST)
                abort();
            struct site *site = &sites[site_count];
            site->depth = depth;
            site->hash = (uint32_t)hash;
            memcpy(site->frames, frames, depth * sizeof *frames);
            site_index[at] = ++site_count;
            return site_count - 1;
        }
        const struct site *site = &sites[found - 1];
        if (site->hash == (uint32_t)hash && site->depth == depth &&
            memcmp(site->frames, frames, depth * sizeof *frames) == 0)
            return found - 1;
    }
}

static void count(struct sum *sum, size_t n, size_t cls_bytes, int sign)
{
    double chance = -expm1(-(double)cls_bytes / rate), missed = (1 - chance) / chance;
    sum->blocks += sign;
    sum->bytes += sign * (double)n;
    sum->samples += sign * chance;
    sum->blocks_variance += sign * missed;
    sum->bytes_variance += sign * missed * (double)n * (double)n;
}

/* A block that realloc leaves where it is: what is allocated is what it grows by. */
static void resize(struct block *block, size_t n)
{
    struct sum *total = &sites[block->site].total, *live = &sites[block->site].live;
    size_t all = block->all + (n > block->n ? n - block->n : 0);
    double chance = -expm1(-(double)block->cls_bytes / rate), missed = (1 - chance) / chance;
    double before = (double)block->n, then = (double)n;
    total->bytes += (double)(all - block->all);
    total->bytes_variance +=
        missed * ((double)all * (double)all - (double)block->all * (double)block->all);
    live->bytes += then - before;
    live->bytes_variance += missed * (then * then - before * before);
    block->n = n;
    block->all = all;
}

static struct block *block_at(uintptr_t p, bool add)
{
    size_t at = (p >> 4) * 0x9e3779b97f4a7c15u >> 40;
    struct block *removed = NULL;
    for (size_t tries = 0; tries < BLOCKS_MOST; tries++, at = (at + 1) % BLOCKS_MOST) {
        struct block *block = &blocks[at];
        if (block->p == p)
            return block;
        if (block->p == 1 && removed == NULL)
            removed = block;
        if (block->p == 0)
            return !add ? NULL : removed != NULL ? removed : block;
    }
    abort();
}

/* After p was allocated. */
static __attribute__((noinline)) void *added(void *p, size_t n)
{
    if (p == NULL || inside || state == ENDED || blocks == NULL)
        return p;
    int saved = errno;
    inside = true;
    struct trace trace = {0};
    _Unwind_Backtrace(step, &trace);
    pthread_mutex_lock(&lock);
    if (state == COUNTING) {
        /* The first two are here and in the function that has malloc's name. */
        struct block *block = block_at((uintptr_t)p, true);
        size_t usable = malloc_usable_size(p);
        block->p = (uintptr_t)p;
        block->n = block->all = n;
        block->cls_bytes = (uint32_t)usable;
        block->site = site_of(&trace.frames[2], trace.depth < 2 ? 0 : trace.depth - 2);
        count(&sites[block->site].total, n, usable, 1);
        count(&sites[block->site].live, n, usable, 1);
    } else if (state == BEFORE && ++allocated >= begin_after) {
        state = COUNTING;
        if (hakmem_profile_start() != 0)
            abort();
    }
    pthread_mutex_unlock(&lock);
    inside = false;
    errno = saved;
    return p;
}

/* Before p is freed. */
static void removed(void *p)
{
    if (p == NULL || inside || state != COUNTING)
        return;
    pthread_mutex_lock(&lock);
    struct block *block = state == COUNTING ? block_at((uintptr_t)p, false) : NULL;
    if (block != NULL) {
        count(&sites[block->site].live, block->n, block->cls_bytes, -1);
        block->p = 1;
    }
    pthread_mutex_unlock(&lock);
}

#define SERVED(call, n)                    \
    __extension__({                        \
        void *made = added((call), (n));   \
        __asm__ volatile("" : "+r"(made)); \
        made;                              \
    })

EXPORT void *malloc(size_t n) { return SERVED(hakmem_malloc(n), n); }
EXPORT void *calloc(size_t count_of, size_t size)
{
    return SERVED(hakmem_calloc(count_of, size), count_of * size);
}
EXPORT void free(void *p)
{
    removed(p);
    hakmem_free(p);
}
EXPORT void *realloc(void *p, size_t n)
{
    if (p == NULL)
        return SERVED(hakmem_realloc(p, n), n);
    size_t usable = malloc_usable_size(p);
    /* Whether it stays is known only after; nobody else has p meanwhile. */
    struct block was = {0};
    pthread_mutex_lock(&lock);
    struct block *block = blocks != NULL ? block_at((uintptr_t)p, false) : NULL;
    if (block != NULL) {
        was = *block;
        block->p = 1;
    }
    pthread_mutex_unlock(&lock);
    void *moved = hakmem_realloc(p, n);
    bool stays = moved == p && (n <= IN_PLACE_MOST || malloc_usable_size(moved) == usable);
    pthread_mutex_lock(&lock);
    if (was.p != 0 && state == COUNTING) {
        if (stays || moved == NULL) {
            struct block *again = block_at((uintptr_t)p, true);
            *again = was;
            if (stays)
                resize(again, n);
        } else
            count(&sites[was.site].live, was.n, was.cls_bytes, -1);
    }
    pthread_mutex_unlock(&lock);
    return stays ? moved : SERVED(moved, n);
}
EXPORT void *reallocarray(void *p, size_t count_of, size_t size)
{
    return realloc(p, count_of * size);
}
EXPORT void *memalign(size_t align, size_t n) { return SERVED(hakmem_memalign(align, n), n); }
EXPORT void *aligned_alloc(size_t align, size_t n)
{
    return SERVED(hakmem_aligned_alloc(align, n), n);
}
EXPORT int posix_memalign(void **p, size_t align, size_t n)
{
    int error = hakmem_posix_memalign(p, align, n);
    if (error == 0)
        *p = SERVED(*p, n);
    return error;
}

static void *needed(void *p)
{
    if (p == NULL)
        abort();
    return p;
}

/* operator new and delete. */
EXPORT void *_Znwm(size_t n) { return SERVED(needed(hakmem_malloc(n)), n); }
EXPORT void *_Znam(size_t n) { return SERVED(needed(hakmem_malloc(n)), n); }
EXPORT void *_ZnwmSt11align_val_t(size_t n, size_t align)
{
    return SERVED(needed(hakmem_memalign(align, n)), n);
}
EXPORT void *_ZnamSt11align_val_t(size_t n, size_t align)
{
    return SERVED(needed(hakmem_memalign(align, n)), n);
}
EXPORT void *_ZnwmRKSt9nothrow_t(size_t n, const void *t)
{
    (void)t;
    return SERVED(hakmem_malloc(n), n);
}
EXPORT void *_ZnamRKSt9nothrow_t(size_t n, const void *t)
{
    (void)t;
    return SERVED(hakmem_malloc(n), n);
}
#define DELETES(name, ...)        \
    EXPORT void name(__VA_ARGS__) \
    {                             \
        removed(p);               \
        hakmem_free(p);           \
    }
DELETES(_ZdlPv, void *p)
DELETES(_ZdaPv, void *p)
DELETES(_ZdlPvm, void *p, size_t n __attribute__((unused)))
DELETES(_ZdaPvm, void *p, size_t n __attribute__((unused)))
DELETES(_ZdlPvSt11align_val_t, void *p, size_t a __attribute__((unused)))
DELETES(_ZdaPvSt11align_val_t, void *p, size_t a __attribute__((unused)))
DELETES(_ZdlPvmSt11align_val_t, void *p, size_t n __attribute__((unused)),
        size_t a __attribute__((unused)))
DELETES(_ZdaPvmSt11align_val_t, void *p, size_t n __attribute__((unused)),
        size_t a __attribute__((unused)))

/* ---- start, fork, end ---- */

static void before_fork(void) { pthread_mutex_lock(&lock); }
static void after_fork(void) { pthread_mutex_unlock(&lock); }

static void *room(size_t bytes)
{
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                   -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

static __attribute__((constructor)) void begin(void)
{
    const char *text = getenv("HAKMEM_PROFILE_RATE");
    rate = text != NULL ? (double)atol(text) : 512 * 1024;
    text = getenv("EXACT_AFTER");
    begin_after = text != NULL ? atol(text) : 0;
    sites = needed(room(SITES_MOST * sizeof *sites));
    site_index = needed(room(2 * SITES_MOST * sizeof *site_index));
    pthread_atfork(before_fork, after_fork, after_fork);
    blocks = needed(room(BLOCKS_MOST * sizeof *blocks));
}

static void add_sum(FILE *file, const struct sum *sum)
{
    fprintf(file, "%.0f %.0f %.9g %.9g %.9g ", sum->blocks, sum->bytes, sum->samples,
            sum->blocks_variance, sum->bytes_variance);
}

static __attribute__((destructor)) void end(void)
{
    char path[4096];
    const char *folder = getenv("EXACT_FOLDER");
    pthread_mutex_lock(&lock);
    inside = true;
    if (folder == NULL || state != COUNTING)
        return;
    state = ENDED;
    snprintf(path, sizeof path, "%s/%d.heap", folder, getpid());
    int profile = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (profile < 0 || hakmem_profile_write(profile) != 0)
        abort();
    hakmem_profile_stop();
    close(profile);
    snprintf(path, sizeof path, "%s/%d.exact", folder, getpid());
    FILE *file = fopen(path, "w");
    if (file == NULL)
        abort();
    for (uint32_t i = 0; i < site_count; i++) {
        add_sum(file, &sites[i].total);
        add_sum(file, &sites[i].live);
        for (uint32_t k = 0; k < sites[i].depth; k++)
            fprintf(file, "%#lx ", (unsigned long)sites[i].frames[k]);
        fputc('\n', file);
    }
    if (fclose(file) != 0)
        abort();
    pthread_mutex_unlock(&lock);
}

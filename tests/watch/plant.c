/* Plants memory of a known kind and amount, says how much, and waits: test_sheet.py looks before
 * and after. Each word on standard input plants one kind; the answer is a line: the bytes planted.
 * With an argument a second thread does all this, and the first one ends.
 *
 * Sizes are those of classes, so that a block's usable size is what it takes. */
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define KIB ((size_t)1024)
#define MIB (1024 * KIB)
#define MOST (1024 * KIB)

static void *kept[MOST]; /* what stays, so that nothing is lost */
static size_t count;

static void *take(size_t size)
{
    char *p = malloc(size);
    if (p == NULL || count == MOST)
        _exit(3);
    memset(p, 1, malloc_usable_size(p));
    kept[count++] = p;
    return p;
}

/* Small, large and huge blocks. */
static size_t live(void)
{
    size_t sum = 0;
    for (unsigned i = 0; sum < 48 * MIB; i++)
        sum += malloc_usable_size(take(16 + i * 37 % 3000));
    for (unsigned i = 0; i < 40; i++)
        sum += malloc_usable_size(take(100 * KIB + i * 20 * KIB));
    for (unsigned i = 0; i < 4; i++)
        sum += malloc_usable_size(take((3 + i) * MIB));
    return sum;
}

/* Takes blocks and frees those whose addresses have one of some bits; how many bytes. */
static size_t take_and_free(size_t size, size_t bytes, size_t bits)
{
    size_t first = count, freed = 0;
    while (count - first < bytes / size)
        take(size);
    for (size_t i = first; i < count; i++)
        if ((size_t)kept[i] & bits) {
            free(kept[i]);
            kept[i] = NULL;
            freed += size;
        }
    return freed;
}

/* One block of a page stays. */
static size_t holes(void) { return take_and_free(256, 64 * MIB, 4096 - 256); }

/* As idle memory goes back by itself, soon. */
static void keep_what_is_freed(void) { mallopt(M_TRIM_THRESHOLD, -1); }

/* Of runs of eight pages four are free. */
static size_t free_pages(void)
{
    keep_what_is_freed();
    return take_and_free(512, 12 * MIB, 4 * 4096);
}

static size_t mappings(void)
{
    keep_what_is_freed();
    void *p = take(64 * MIB);
    size_t size = malloc_usable_size(p);
    free(p);
    count--;
    return size;
}

static size_t other(void)
{
    void *p = mmap(NULL, 32 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        _exit(3);
    memset(p, 1, 32 * MIB);
    return 32 * MIB;
}

/* A part of what is reserved, as runtimes have it: it lies on memory without access. */
static size_t reserved(void)
{
    char *p = mmap(NULL, 64 * MIB, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED || mprotect(p + 32 * MIB, 16 * MIB, PROT_READ | PROT_WRITE) != 0)
        _exit(3);
    memset(p + 32 * MIB, 1, 16 * MIB);
    return 16 * MIB;
}

/* Blocks that the kernel is asked to write to swap at once: it does so where it has any. */
static size_t swapped(void)
{
    for (unsigned i = 0; i < 8; i++) {
        char *p = take(4 * MIB);
        if (madvise(p - (size_t)p % 4096, 4 * MIB, MADV_PAGEOUT) != 0)
            _exit(3);
    }
    return 32 * MIB;
}

static size_t file(void)
{
    char name[] = "/tmp/planted-XXXXXX";
    int at = mkstemp(name);
    if (at < 0 || unlink(name) != 0 || ftruncate(at, 24 * MIB) != 0)
        _exit(3);
    void *p = mmap(NULL, 24 * MIB, PROT_READ | PROT_WRITE, MAP_SHARED, at, 0);
    if (p == MAP_FAILED)
        _exit(3);
    memset(p, 1, 24 * MIB);
    return 24 * MIB;
}

static int pipes[2];

static void *deep(void *nothing)
{
    char room[16 * MIB];
    memset(room, 1, sizeof room);
    __asm__ volatile("" : : "r"(room) : "memory");
    if (write(pipes[1], "1", 1) != 1)
        _exit(3);
    pause();
    return nothing;
}

static void *stacks_full(void *nothing)
{
    enum { BLOCKS = 1024 }; /* more than a stack holds: what was not written to leaves it first */
    void *some[BLOCKS];
    for (unsigned size = 16; size <= 1024; size += 16) {
        for (unsigned i = 0; i < BLOCKS; i++)
            if ((some[i] = malloc(size)) != NULL)
                memset(some[i], 1, size);
        for (unsigned i = 0; i < BLOCKS; i++)
            free(some[i]);
    }
    if (write(pipes[1], "1", 1) != 1)
        _exit(3);
    pause();
    return nothing;
}

static void start(void *(*function)(void *), size_t stack)
{
    pthread_attr_t with;
    pthread_t thread;
    char said;
    pthread_attr_init(&with);
    pthread_attr_setstacksize(&with, stack);
    if (pthread_create(&thread, &with, function, NULL) != 0 || read(pipes[0], &said, 1) != 1)
        _exit(3);
}

static size_t stack(void)
{
    start(deep, 17 * MIB);
    return 16 * MIB;
}

/* How many free bytes hakmem keeps where is its own affair: what it says of itself is compared. */
struct stats {
    size_t mapped, program, caches, transfer, free_in_slabs, rest, retained;
};
size_t hakmem_stats(struct stats *stats, size_t size) __attribute__((weak));

static struct stats stats(void)
{
    struct stats stats = {0};
    if (hakmem_stats != NULL)
        hakmem_stats(&stats, sizeof stats);
    return stats;
}

static size_t caches(void)
{
    size_t before = stats().caches;
    for (unsigned i = 0; i < 8; i++)
        start(stacks_full, MIB);
    return stats().caches - before;
}

static size_t slices(void)
{
    keep_what_is_freed();
    size_t first = count, before = stats().retained;
    for (unsigned i = 0; i < 128; i++)
        take(192 * KIB);
    for (size_t i = first; i < count; i++) {
        free(kept[i]);
        kept[i] = NULL;
    }
    return stats().retained - before;
}

static void *signalled(void *nothing)
{
    raise(SIGUSR2);
    if (write(pipes[1], "1", 1) != 1)
        _exit(3);
    return nothing;
}

/* A signal that meets a thread with the smallest stack. */
static size_t small(void)
{
    start(signalled, (size_t)sysconf(_SC_THREAD_STACK_MIN));
    return 1;
}

/* As a program does that has asked for huge pages, and uses little of each. */
static size_t huge_pages(void)
{
    char *p = mmap(NULL, 64 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        _exit(3);
    madvise(p, 64 * MIB, MADV_HUGEPAGE);
    for (size_t i = 0; i < 64 * MIB; i += 2 * MIB)
        p[i] = 1;
    return 64 * MIB;
}

/* Sizes that their class has twice of. */
static size_t rounding(void)
{
    for (unsigned i = 0; i < MOST - 1000; i++)
        take(17);
    return (MOST - 1000) * 15;
}

static size_t sleepers(void)
{
    size_t before = stats().caches;
    for (unsigned i = 0; i < 100; i++)
        start(stacks_full, 256 * KIB);
    return stats().caches - before;
}

static const struct {
    const char *name;
    size_t (*plant)(void);
} kinds[] = {{"live", live},         {"holes", holes},       {"free_pages", free_pages},
             {"slices", slices},     {"kept", mappings},     {"anonymous", other},
             {"file", file},         {"stack", stack},       {"caches", caches},
             {"small", small},       {"swapped", swapped},   {"huge_pages", huge_pages},
             {"rounding", rounding}, {"sleepers", sleepers}, {"reserved", reserved}};

static void *serve(void *nothing)
{
    char word[32];
    printf("ready\n");
    fflush(stdout);
    while (fgets(word, sizeof word, stdin) != NULL) {
        word[strcspn(word, "\n")] = 0;
        size_t planted = 0;
        for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
            if (strcmp(word, kinds[i].name) == 0)
                planted = kinds[i].plant();
        if (strcmp(word, "trim") == 0)
            malloc_trim(0);
        printf("%zu\n", planted);
        fflush(stdout);
    }
    return nothing;
}

int main(int arguments, char **argument)
{
    pthread_t thread;
    (void)argument;
    memset(kept, 1, sizeof kept);
    if (pipe(pipes) != 0)
        return 3;
    if (arguments == 1) {
        serve(NULL);
        return 0;
    }
    if (pthread_create(&thread, NULL, serve, NULL) != 0)
        return 3;
    pthread_exit(NULL);
}

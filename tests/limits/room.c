/* How much of a limited address space a program gets, and whether it works on at its end. The
 * program sets the limit and starts itself anew, so that what it is made of counts too, as under
 * `ulimit -v` (RLIMIT_AS) or `ulimit -d` (RLIMIT_DATA, which counts private writable mappings, as
 * overcommit 2 does).
 *
 *   room [--least PERCENT] LIMIT RESOURCE SIZE...     LIMIT in MiB, RESOURCE as or data,
 *                                                     SIZE in bytes, 0 for all sizes mixed
 *
 * Linked with the core over the fake kernel, RESOURCE is commit: what overcommit 2 counts.
 *
 * One process for each size. It allocates blocks until there is none; frees the second half of
 * them, and takes that back in blocks of other sizes; frees all, and takes all of it in blocks of
 * every other size. Each of these must give the least share: of the limit, or of what was freed. In
 * the end all is free, and half of the limit can be mapped by the program itself. A
 * line for each size: percent of the limit at first, of the half at other sizes (the worst), of
 * the limit after everything was freed (the worst). */
#include "../api/check.h"

#include <stdarg.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef STRESS_HAKMEM_NAMES
#include "os_fake.h"
#endif

#define MARK 4321

/* Blocks are kept in a list through themselves: the test needs no memory of its own. */
struct link {
    struct link *next;
    size_t size;
    uintptr_t check;
};

struct blocks {
    struct link *newest;
    size_t bytes;
    size_t count;
};

static const size_t sizes[] = {64, KiB, 8 * KiB, 64 * KiB, MiB, 4 * MiB, 0};
#define SIZES (sizeof sizes / sizeof *sizes)

/* So many that a mix has about as many bytes of each. */
static const size_t mix[] = {64,  64,  64,   64,   100,   100,   1000,      1000,
                             500, 900, 3000, 8000, 30000, 70000, 300 * KiB, 2 * MiB};

static bool passed = true;

__attribute__((format(printf, 1, 2))) static void wrong(const char *format, ...)
{
    char line[256];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    passed = false;
    if (length > 0 && write(STDERR_FILENO, line, (size_t)length) < 0)
        _exit(99);
}

static uintptr_t check_of(const struct link *block) { return (uintptr_t)block * 31 + block->size; }

static void take_all(struct blocks *all, size_t size)
{
    for (size_t i = 0;; i++) {
        size_t n = size != 0 ? size : mix[i * 7 % (sizeof mix / sizeof *mix)];
        errno = MARK;
        struct link *block = do_malloc(n);
        if (errno != (block != NULL ? MARK : ENOMEM))
            wrong("errno after malloc(%zu) that gave %p: found %d\n", n, (void *)block, errno);
        if (block == NULL)
            return;
        *block = (struct link){all->newest, n, 0};
        block->check = check_of(block);
        all->newest = block;
        all->bytes += n;
        all->count++;
    }
}

/* Frees the newest until at most `keep` blocks are left. */
static void give(struct blocks *all, size_t keep)
{
    while (all->count > keep) {
        struct link *block = all->newest;
        if (block->check != check_of(block))
            wrong("block %p of %zu bytes: its contents are not what was written\n", (void *)block,
                  block->size);
        all->newest = block->next;
        all->bytes -= block->size;
        all->count--;
        errno = MARK;
        do_free(block);
        if (errno != MARK)
            wrong("errno after free: expected %d, found %d\n", MARK, errno);
    }
}

static unsigned percent(size_t part, size_t of) { return (unsigned)(part * 100 / of); }

static void judge(const char *what, size_t size, size_t then, unsigned found, unsigned least)
{
    if (found < least)
        wrong("blocks of %zu, %s in blocks of %zu: expected at least %u%%, found %u%%\n", size,
              what, then, least, found);
}

static void try_size(size_t size, size_t limit, const char *resource, unsigned least)
{
    struct blocks first = {.newest = NULL};
    take_all(&first, size);
    unsigned at_first = percent(first.bytes, limit);
    judge("at first", size, size, at_first, least);

    /* Half freed: the newest blocks, which lie beside each other. */
    size_t before = first.bytes;
    give(&first, first.count / 2);
    size_t freed = before - first.bytes;
    unsigned half = 100;
    size_t half_at = 0;
    for (size_t i = 0; i < SIZES; i++) {
        if (sizes[i] == size)
            continue;
        struct blocks others = {.newest = NULL};
        take_all(&others, sizes[i]);
        unsigned share = percent(others.bytes, freed);
        /* Some of a small limit's half can't hold one large block more. */
        if (sizes[i] * 8 <= freed) {
            judge("half of them freed, then", size, sizes[i], share, least);
            if (share < half)
                half = share, half_at = sizes[i];
        }
        give(&others, 0);
    }
    give(&first, 0);

    unsigned all = 100;
    size_t all_at = 0;
    for (size_t i = 0; i < SIZES; i++) {
        struct blocks others = {.newest = NULL};
        take_all(&others, sizes[i]);
        unsigned share = percent(others.bytes, limit);
        judge("all freed, then", size, sizes[i], share, least);
        if (share < all)
            all = share, all_at = sizes[i];
        give(&others, 0);
    }
    size_t mine = limit / 2;
    if (mmap(NULL, mine, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED)
        wrong("blocks of %zu, all freed: %zu MiB could not be mapped\n", size, mine / MiB);
    printf("%-4s %5zu MiB %8zu bytes: %3u%% at first, half freed %3u%% (%zu), all freed %3u%% "
           "(%zu)%s\n",
           resource, limit / MiB, size, at_first, half, half_at, all, all_at,
           passed ? "" : "  TOO LITTLE");
    fflush(stdout);
}

int main(int argc, char **argv)
{
    unsigned least = 75;
    if (argc > 2 && strcmp(argv[1], "--least") == 0) {
        least = (unsigned)strtoul(argv[2], NULL, 10);
        argc -= 2;
        argv += 2;
    }
    if (argc < 4) {
        fprintf(stderr, "room [--least PERCENT] LIMIT RESOURCE SIZE...\n");
        return 2;
    }
    size_t limit = strtoul(argv[1], NULL, 10) * MiB;
    const char *resource = argv[2];
    if (argc == 4 && getenv("ROOM_LIMITED") != NULL) {
        alarm(300);
#ifdef STRESS_HAKMEM_NAMES
        os_fake.commit_limit = limit;
#endif
        try_size(strtoul(argv[3], NULL, 10), limit, resource, least);
        return !passed;
    }

    check_start("room");
    int which = strcmp(resource, "as") == 0 ? RLIMIT_AS : RLIMIT_DATA;
    char share[16];
    snprintf(share, sizeof share, "%u", least);
    int failed = 0;
    for (int i = 3; i < argc; i++) {
        pid_t child = fork();
        if (child == 0) {
            struct rlimit both = {limit, limit};
            setenv("ROOM_LIMITED", "1", 1);
            /* Where the kernel's random places lie on both sides of a multiple of 4 GiB (in one run
             * of a hundred) the map takes a leaf more, 640 KiB, for which 4 MiB of blocks no longer
             * fit into 64 MiB. How much there is room for is not to depend on that. */
            personality(ADDR_NO_RANDOMIZE);
            if (strcmp(resource, "commit") != 0 && setrlimit(which, &both) != 0)
                _exit(98);
            execl("/proc/self/exe", argv[0], "--least", share, argv[1], resource, argv[i], NULL);
            _exit(97);
        }
        int status = -1;
        if (child < 0 || waitpid(child, &status, 0) != child || status != 0) {
            fprintf(stderr, "%s MiB of %s, blocks of %s: expected the end with 0, found %s %d\n",
                    argv[1], resource, argv[i], WIFSIGNALED(status) ? "signal" : "status",
                    WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
            failed = 1;
        }
    }
    return failed;
}

/* A program with threads whose system calls are filtered by what real sandboxes use, or by what
 * docs/contract.md lists. Whatever the filter doesn't list kills the process.
 *
 *   sandbox RULES [threads] [fork]          the filter comes for all threads while they run, the
 *                                           allocator's own too; then a thread more, and a child,
 *                                           where the sandbox permits them
 *   sandbox RULES alone                     the filter comes before the first allocation
 *   sandbox RULES exec PROGRAM ARGUMENTS... the filter first, then the program
 *
 * RULES are lists as rules.h reads them, with commas between them, or "none". */
#define _GNU_SOURCE
#include "rules.h"

#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- the work ---- */

enum { THREADS = 3, BLOCKS = 400, MANY = 4000, ROUNDS = 3 };

static _Noreturn void fail(const char *what, const char *which)
{
    fprintf(stderr, "sandbox: %s: %s\n", which, what);
    exit(2);
}

static pthread_barrier_t turn;

static void check(const unsigned char *block, size_t n, unsigned char mark)
{
    if (block[0] != mark || block[n / 2] != mark || block[n - 1] != mark)
        fail("a block's bytes are not what was written", "content");
}

static unsigned char *filled(unsigned char *block, size_t n, unsigned char mark)
{
    if (block == NULL)
        fail("no memory", "malloc");
    memset(block, mark, n);
    return block;
}

static void allocate(unsigned char mark)
{
    static const size_t sizes[] = {40, 200, 1000, 40000, 300000, 3 << 20};
    static __thread unsigned char *blocks[MANY]; /* of one kind so many that slabs come whole */
    for (unsigned kind = 0; kind < 6; kind++) {
        unsigned n = kind == 2 ? MANY : kind < 2 ? BLOCKS : kind < 5 ? 40 : 6;
        for (unsigned i = 0; i < n; i++)
            blocks[i] = filled(malloc(sizes[kind]), sizes[kind], mark);
        for (unsigned i = 0; i < n; i++) {
            check(blocks[i], sizes[kind], mark);
            free(blocks[i]);
        }
        unsigned char *zero = calloc(1, sizes[kind]);
        if (zero == NULL)
            fail("no memory", "calloc");
        check(zero, sizes[kind], 0);
        free(zero);
    }
    /* Blocks that grow in each other's way have to move. */
    unsigned char *grows[2] = {filled(malloc(100), 100, mark), filled(malloc(100), 100, mark)};
    for (size_t n = 100; n < 40 << 20; n *= 3)
        for (unsigned i = 0; i < 2; i++) {
            grows[i] = realloc(grows[i], n * 3);
            if (grows[i] == NULL)
                fail("no memory", "realloc");
            check(grows[i], n, mark);
            memset(grows[i] + n, mark, n * 2);
        }
    free(grows[0]);
    free(grows[1]);
}

static void *work(void *number)
{
    unsigned char mark = (unsigned char)(uintptr_t)number;
    unsigned char *kept[BLOCKS];
    allocate(mark);
    for (unsigned i = 0; i < BLOCKS; i++)
        kept[i] = filled(malloc(500), 500, mark);
    pthread_barrier_wait(&turn);
    pthread_barrier_wait(&turn); /* the filter is there, and all rested */
    for (unsigned round = 0; round < ROUNDS; round++)
        allocate(mark);
    for (unsigned i = 0; i < BLOCKS; i++) {
        check(kept[i], 500, mark);
        free(kept[i]);
    }
    malloc_trim(0);
    return NULL;
}

static void allocate_here(void) { allocate(99); }

static void *work_once(void *number)
{
    allocate((unsigned char)(uintptr_t)number);
    return NULL;
}

static unsigned threads_now(void)
{
    struct stat folder;
    return stat("/proc/self/task", &folder) == 0 ? (unsigned)folder.st_nlink - 2 : 0;
}

static void try_child(void)
{
    pid_t child = fork();
    if (child == 0) {
        allocate(77);
        _exit(0);
    }
    int status = 1;
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0)
        fail("a child did not end well", "fork");
}

static _Noreturn void finish(void)
{
    static const char done[] = "sandbox: done\n"; /* by no stream, which asks what it writes to */
    exit(write(STDOUT_FILENO, done, sizeof done - 1) < 0);
}

int main(int argc, char **argv)
{
    if (argc < 2)
        fail("RULES are missing", "usage");
    if (strcmp(argv[1], "none") != 0)
        rules_read(argv[1]);
    if (argc > 3 && strcmp(argv[2], "exec") == 0) {
        rules_apply();
        execv(argv[3], argv + 3);
        fail(strerror(errno), argv[3]);
    }
    if (argc > 2 && strcmp(argv[2], "alone") == 0) {
        rules_apply();
        allocate(11);
        finish();
    }
    bool more_threads = false;
    bool forks = false;
    for (int i = 2; i < argc; i++) {
        more_threads |= strcmp(argv[i], "threads") == 0;
        forks |= strcmp(argv[i], "fork") == 0;
    }
    pthread_t threads[THREADS];
    pthread_barrier_init(&turn, NULL, THREADS + 1);
    for (uintptr_t i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, work, (void *)(i + 1)) != 0)
            fail("refused", "pthread_create");
    pthread_barrier_wait(&turn);
    if (dlsym(RTLD_DEFAULT, "hakmem_malloc") != NULL && threads_now() != THREADS + 2)
        fail("the allocator's own thread doesn't run", "start");
    rules_apply();
    /* One more than ever were, so nothing of an ended one's is left for it. */
    pthread_t another;
    if (more_threads && (pthread_create(&another, NULL, work_once, (void *)(uintptr_t)88) != 0 ||
                         pthread_join(another, NULL) != 0))
        fail("refused", "pthread_create in the sandbox");
    if (!rules_scavenger_returns(allocate_here))
        fail("nothing goes back while the threads rest", "the allocator's own thread");
    pthread_barrier_wait(&turn);
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    if (forks)
        try_child();
    allocate(55);
    finish();
}

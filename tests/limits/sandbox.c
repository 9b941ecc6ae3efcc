/* A program with threads whose system calls are filtered by what real sandboxes use. Whatever the
 * filter doesn't list kills the process.
 *
 *   sandbox RULES [threads] [fork]          the filter comes for all threads while they run, the
 *                                           allocator's own too; then a thread more, and a child,
 *                                           where the sandbox permits them
 *   sandbox RULES alone                     the filter comes before the first allocation
 *   sandbox RULES exec PROGRAM ARGUMENTS... the filter first, then the program
 *
 * RULES is a file of sandboxes/, or "none". A line of it is the name of a system call, what becomes
 * of it (allow, which may be left out; kill; error NUMBER), and a condition: if ARGUMENT is VALUE,
 * within MASK (no other bit is set) or beyond MASK (some is). The first line that fits decides. */
#define _GNU_SOURCE
#include "architecture.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef SECCOMP_RET_KILL_PROCESS
#define SECCOMP_RET_KILL_PROCESS 0x80000000U
#endif

/* What this system's headers know. */
static const struct {
    const char *name;
    unsigned number;
} calls[] = {
#include "sandbox_calls.inc"
};
#define CALLS (sizeof calls / sizeof *calls)

static _Noreturn void fail(const char *what, const char *which)
{
    fprintf(stderr, "sandbox: %s: %s\n", which, what);
    exit(2);
}

/* ---- the filter ---- */

#define RULES_MOST 4000
static struct sock_filter rules[RULES_MOST];
static unsigned short count;

static void add(struct sock_filter rule)
{
    if (count == RULES_MOST)
        fail("more than this program has room for", "rules");
    rules[count++] = rule;
}

static void load(size_t offset)
{
    add((struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (unsigned)offset));
}

static void answer(unsigned what) { add((struct sock_filter)BPF_STMT(BPF_RET | BPF_K, what)); }

/* What follows is left out, so many instructions of it, unless the word loaded is `value`. */
static void unless(unsigned value, unsigned char left_out)
{
    add((struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, left_out));
}

static void add_rule(unsigned number, unsigned what, const char *test, unsigned argument,
                     unsigned value)
{
    if (test == NULL) {
        unless(number, 1);
        answer(what);
        return;
    }
    bool bits = strcmp(test, "is") != 0;
    unless(number, bits ? 5 : 4);
    /* Little endian; what is tested are ints. */
    load(offsetof(struct seccomp_data, args) + argument * sizeof(uint64_t));
    if (bits)
        add((struct sock_filter)BPF_STMT(BPF_ALU | BPF_AND | BPF_K, ~value));
    if (strcmp(test, "beyond") == 0)
        add((struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, 0));
    else
        unless(bits ? 0 : value, 1);
    answer(what);
    load(offsetof(struct seccomp_data, nr));
}

static void read_rule(char *line)
{
    char *name = strtok(line, " \t\n");
    if (name == NULL || *name == '#')
        return;
    unsigned what = SECCOMP_RET_ALLOW;
    unsigned argument = 0;
    unsigned value = 0;
    const char *test = NULL;
    char *word = strtok(NULL, " \t\n");
    if (word != NULL && strcmp(word, "kill") == 0) {
        what = SECCOMP_RET_KILL_PROCESS;
        word = strtok(NULL, " \t\n");
    } else if (word != NULL && strcmp(word, "error") == 0) {
        what = SECCOMP_RET_ERRNO | (unsigned)atoi(strtok(NULL, " \t\n"));
        word = strtok(NULL, " \t\n");
    }
    if (word != NULL && strcmp(word, "if") == 0) {
        argument = (unsigned)atoi(strtok(NULL, " \t\n"));
        test = strtok(NULL, " \t\n");
        value = (unsigned)strtoul(strtok(NULL, " \t\n"), NULL, 0);
        word = strtok(NULL, " \t\n");
    }
    if (word != NULL && *word != '#')
        fail("a word that is not understood", word);
    for (size_t i = 0; i < CALLS; i++)
        if (strcmp(calls[i].name, name) == 0) {
            add_rule(calls[i].number, what, test, argument, value);
            return;
        }
    /* Not a call of this architecture, or newer than its headers. */
}

static void read_rules(const char *path)
{
    load(offsetof(struct seccomp_data, arch));
    unless(ARCHITECTURE, 1);
    add((struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JA, 1, 0, 0));
    answer(SECCOMP_RET_KILL_PROCESS);
    load(offsetof(struct seccomp_data, nr));
    /* Without a stream, whose buffer would be the process's first allocation. */
    static char text[64 * 1024];
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = file < 0 ? -1 : read(file, text, sizeof text - 1);
    if (got < 0 || got == sizeof text - 1)
        fail(got < 0 ? strerror(errno) : "too long", path);
    close(file);
    char *rest = text;
    for (char *line; (line = strsep(&rest, "\n")) != NULL;)
        read_rule(line);
    answer(SECCOMP_RET_KILL_PROCESS);
}

static void enter(void)
{
    if (count == 0)
        return;
    struct sock_fprog program = {count, rules};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) != 0) {
        printf("sandbox: this kernel gives no filters (%s): skipped\n", strerror(errno));
        exit(77);
    }
}

/* ---- the work ---- */

enum { THREADS = 3, BLOCKS = 400, ROUNDS = 3 };

static pthread_barrier_t turn;

static void sleep_for(long milliseconds)
{
    struct timespec time = {milliseconds / 1000, milliseconds % 1000 * 1000000};
    nanosleep(&time, NULL);
}

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
    static __thread unsigned char *blocks[BLOCKS];
    for (unsigned kind = 0; kind < 6; kind++) {
        unsigned n = kind < 3 ? BLOCKS : kind < 5 ? 40 : 6;
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
    pthread_barrier_wait(&turn); /* the filter is there */
    for (unsigned round = 0; round < ROUNDS; round++) {
        sleep_for(200); /* some rounds of the allocator's own thread */
        allocate(mark);
    }
    for (unsigned i = 0; i < BLOCKS; i++) {
        check(kept[i], 500, mark);
        free(kept[i]);
    }
    malloc_trim(0);
    return NULL;
}

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
        read_rules(argv[1]);
    if (argc > 3 && strcmp(argv[2], "exec") == 0) {
        enter();
        execv(argv[3], argv + 3);
        fail(strerror(errno), argv[3]);
    }
    if (argc > 2 && strcmp(argv[2], "alone") == 0) {
        enter();
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
    enter();
    /* One more than ever were, so nothing of an ended one's is left for it. */
    pthread_t another;
    if (more_threads && (pthread_create(&another, NULL, work_once, (void *)(uintptr_t)88) != 0 ||
                         pthread_join(another, NULL) != 0))
        fail("refused", "pthread_create in the sandbox");
    pthread_barrier_wait(&turn);
    allocate(99);
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    if (forks)
        try_child();
    allocate(55);
    finish();
}

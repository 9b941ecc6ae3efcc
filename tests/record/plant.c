/* A program whose calls of the allocator are known: tests/record compares them with what
 * `hakmem record` wrote. What it does is named by its first word.
 *
 * Calls that are to be compared are printed, a line each, after the fact, from a buffer that is no
 * block. They lie between a block of MARK bytes and one of MARK + 1. */
#define _GNU_SOURCE
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define MARK 123457
#define LINE 96
#define SLOTS 4096
#define NOINLINE __attribute__((noinline))

static char lines[1 << 20];
static size_t length;

static void say(const char *what, const void *p, const void *former, size_t n, size_t align)
{
    length += (size_t)snprintf(lines + length, LINE, "%s %lu %lu %zu %zu\n", what, (uintptr_t)p,
                               (uintptr_t)former, n, align);
}

static void print_lines(void)
{
    for (size_t at = 0; at < length;) {
        ssize_t done = write(1, lines + at, length - at);
        if (done <= 0)
            _exit(9);
        at += (size_t)done;
    }
}

static void mark(size_t n)
{
    void *volatile p = malloc(n);
    free(p);
}

static void *taken(void *p, size_t n, size_t align)
{
    say("take", p, NULL, n, align);
    return p;
}

static void given(void *p)
{
    say("free", p, NULL, 0, 0);
    free(p);
}

static void *resized(void *p, size_t n)
{
    uintptr_t former = (uintptr_t)p;
    void *q = realloc(p, n);
    say("resize", q, (void *)former, n, 0);
    return q;
}

/* Each function, sizes of each kind, and failures. */
static void calls(void)
{
    static const size_t sizes[] = {0, 1, 16, 100, 1024, 5000, 32768, 32769, 65536, 300000, 5 << 20};
    mark(MARK);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        size_t n = sizes[i];
        void *p = taken(malloc(n), n, 0);
        void *q = taken(calloc(3, n), 3 * n, 0);
        void *r = taken(aligned_alloc(64, n), n, 64);
        void *s = NULL;
        if (posix_memalign(&s, 4096, n) == 0)
            taken(s, n, 4096);
        p = resized(p, n + 1);
        p = resized(p, 3 * n + 500);
        p = resized(p, 3 * n + 501);
        q = resized(q, 10);
        given(r);
        given(p);
        given(s);
        given(q);
    }
    taken(malloc(SIZE_MAX / 2), SIZE_MAX / 2, 0);
    void *p = taken(malloc(7), 7, 0);
    say("resize", realloc(p, SIZE_MAX / 2), p, SIZE_MAX / 2, 0);
    say("free", p, NULL, 0, 0);
    if (realloc(p, 0) != NULL)
        _exit(8);
    given(taken(realloc(NULL, 77), 77, 0));
    given(taken(malloc((size_t)5 << 30), (size_t)5 << 30, 0));
    mark(MARK + 1);
    print_lines();
}

/* Two callers of a function in the middle that take as much stack, so that only what lies on it
 * tells them apart; and one that takes as much as it likes. */
static NOINLINE void *leaf(size_t n) { return malloc(n); }
static NOINLINE void *middle(size_t n)
{
    void *p = leaf(n);
    __asm__ volatile("");
    return p;
}
static NOINLINE void left(void)
{
    free(middle(1000));
    __asm__ volatile("");
}
static NOINLINE void right(void)
{
    free(middle(2000));
    __asm__ volatile("");
}
static NOINLINE void wild(size_t n)
{
    volatile char room[n];
    room[0] = 0;
    free(middle(3000));
    (void)room[0];
}
/* Another path for each `turns`: its last calls are each at one of four places. */
#define TURNS 9
static NOINLINE void maze(unsigned n, unsigned turns)
{
    if (n == 0)
        free(leaf(5000));
    else if (n > TURNS)
        maze(n - 1, turns);
    else if ((turns & 3) == 0)
        maze(n - 1, turns >> 2);
    else if ((turns & 3) == 1)
        maze(n - 1, turns >> 2);
    else if ((turns & 3) == 2)
        maze(n - 1, turns >> 2);
    else
        maze(n - 1, turns >> 2);
    __asm__ volatile("");
}
static NOINLINE void deep(unsigned n)
{
    if (n > 0)
        deep(n - 1);
    else
        free(middle(4000));
    __asm__ volatile("");
}

static void paths(void)
{
    for (unsigned i = 0; i < 3000; i++) {
        left();
        right();
        wild(16 + 16 * (i % 50));
        deep(1 + i % 90);
    }
}

/* ---- threads ---- */

static void *_Atomic slots[SLOTS];
static pthread_barrier_t barrier;
static unsigned rounds;

static void *exchange(void *argument)
{
    unsigned random = (unsigned)(uintptr_t)argument * 2654435761u + 1;
    char name[16];
    snprintf(name, sizeof name, "worker-%u", (unsigned)(uintptr_t)argument);
    prctl(PR_SET_NAME, name);
    for (unsigned i = 0; i < rounds; i++) {
        random = random * 1664525u + 1013904223u;
        char *p = malloc(16 + (random >> 20) % 600);
        *p = 1;
        free(atomic_exchange(&slots[(random >> 8) % SLOTS], p));
    }
    return NULL;
}

static void *hold(void *argument)
{
    void *volatile p = malloc(1000);
    pthread_barrier_wait(&barrier);
    free(p);
    return argument;
}

static void threads(unsigned count, void *(*work)(void *))
{
    pthread_attr_t attributes;
    pthread_t *all = malloc(count * sizeof *all);
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 64 << 10);
    pthread_barrier_init(&barrier, NULL, count + 1);
    for (unsigned i = 0; i < count; i++)
        if (pthread_create(&all[i], &attributes, work, (void *)(uintptr_t)i) != 0)
            _exit(77);
    if (work == hold)
        pthread_barrier_wait(&barrier);
    for (unsigned i = 0; i < count; i++)
        pthread_join(all[i], NULL);
    for (unsigned i = 0; i < SLOTS; i++)
        free(slots[i]);
    free(all);
}

/* ---- processes ---- */

static NOINLINE void in_child(void) { free(malloc(4321)); }

static void children(char *self)
{
    mark(MARK);
    for (int i = 0; i < 3; i++) {
        void *p = malloc(5000);
        pid_t child = fork();
        if (child == 0) {
            in_child();
            free(p); /* the parent's */
            if (i == 2)
                execl(self, self, "calls", (char *)NULL);
            exit(0);
        }
        waitpid(child, NULL, 0);
        free(p);
    }
}

/* One call after a pause, in which the recorder takes what was before. */
static void once_more(void)
{
    void *volatile p = malloc(MARK);
    pid_t child = fork();
    if (child == 0) {
        usleep(50000);
        _exit(0);
    }
    waitpid(child, NULL, 0);
    free(p);
}

static NOINLINE void work_on(unsigned long n)
{
    static void *kept[1000];
    unsigned random = 1;
    for (unsigned long i = 0; i < n; i++) {
        random = random * 1664525u + 1013904223u;
        unsigned at = (random >> 10) % 1000;
        free(kept[at]);
        kept[at] = malloc(16 + (random >> 20) % 3000);
    }
}

/* What is in use by three paths, counted by the program itself, and printed at five moments. Of
 * each the mark has another size: MARK + 1 and on. */
#define KINDS 3
#define KEPT 400
static NOINLINE void *red(size_t n) { return malloc(n); }
static NOINLINE void *green(size_t n) { return calloc(1, n); }
static NOINLINE void *blue(size_t n) { return realloc(NULL, n); }

static void moments(void)
{
    static void *(*const functions[KINDS])(size_t) = {red, green, blue};
    static const char *const names[KINDS] = {"red", "green", "blue"};
    static struct {
        void *p;
        size_t bytes;
        unsigned kind;
    } kept[KEPT];
    size_t blocks[KINDS] = {0}, bytes[KINDS] = {0};
    unsigned random = 1;
    for (unsigned moment = 0; moment < 5; moment++) {
        for (unsigned i = 0; i < 5000 * (moment + 1); i++) {
            random = random * 1664525u + 1013904223u;
            unsigned at = (random >> 10) % KEPT, kind = (random >> 20) % (2 + moment % 2);
            size_t n = 1 + (random >> 16) % 5000;
            if (kept[at].p != NULL) {
                free(kept[at].p);
                blocks[kept[at].kind]--;
                bytes[kept[at].kind] -= kept[at].bytes;
            }
            kept[at].p = i % 3 > moment / 2 ? NULL : functions[kind](n);
            kept[at].kind = kind;
            kept[at].bytes = n;
            blocks[kind] += kept[at].p != NULL;
            bytes[kind] += kept[at].p != NULL ? n : 0;
        }
        mark(MARK + 1 + moment);
        for (unsigned kind = 0; kind < KINDS; kind++)
            say(names[kind], NULL, NULL, blocks[kind], bytes[kind]);
    }
    print_lines();
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    unsigned long n = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;
    if (strcmp(what, "calls") == 0) {
        calls();
    } else if (strcmp(what, "paths") == 0) {
        paths();
    } else if (strcmp(what, "maze") == 0) {
        for (unsigned turns = 0; turns < 1u << 2 * TURNS; turns++)
            maze(TURNS + 12, turns);
    } else if (strcmp(what, "exchange") == 0) {
        rounds = 50000;
        threads((unsigned)n, exchange);
    } else if (strcmp(what, "hold") == 0) {
        threads((unsigned)n, hold);
    } else if (strcmp(what, "children") == 0) {
        children(argv[0]);
    } else if (strcmp(what, "once_more") == 0) {
        once_more();
    } else if (strcmp(what, "moments") == 0) {
        moments();
    } else if (strcmp(what, "work") == 0) {
        work_on(n);
    } else if (strcmp(what, "killed") == 0) {
        work_on(n);
        mark(MARK);
        raise(SIGKILL);
    } else if (strcmp(what, "serve") == 0) {
        for (;;) {
            work_on(1000);
            usleep(1000);
        }
    } else if (strcmp(what, "idle") == 0) {
        pause();
    } else {
        return 2;
    }
    return 0;
}

/* One misuse for each run: `caught CASE SIZE [KIND]`, SIZE in bytes, KIND one of malloc (if left
 * out), calloc, aligned, page and new. `caught` alone prints the cases.
 *
 * Prints "before" ahead of the wrong call and "after" behind it; allocates and frees a little more,
 * as a program would, so that what an allocator finds late is found; prints "went on" and returns 0
 * from main. Exit status 77: this case does not exist at this size. table.py runs all of them. */
#include "../stress/names.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define NOT_HERE 77
#define FAILED 78
#define NEIGHBOURS 4 /* that stay in use, before and behind the block */
#define MORE 40      /* blocks after the wrong call */
#define PAGE 4096

static void say(const char *line)
{
    if (write(STDOUT_FILENO, line, strlen(line)) < 0)
        _exit(FAILED);
}

/* ---- blocks ---- */

void *cxx_new(size_t n) __asm__("_Znwm");
void cxx_delete(void *p) __asm__("_ZdlPv");

static void *(*volatile do_new)(size_t) = cxx_new;
static void (*volatile do_delete)(void *) = cxx_delete;

static void *get_malloc(size_t n) { return do_malloc(n); }
static void *get_calloc(size_t n) { return do_calloc(1, n); }
static void *get_aligned(size_t n) { return do_aligned_alloc(64, (n + 63) / 64 * 64); }
static void *get_page(size_t n) { return do_aligned_alloc(PAGE, (n + PAGE - 1) / PAGE * PAGE); }
static void *get_new(size_t n) { return do_new(n); }
static void put_free(void *p) { do_free(p); }
static void put_delete(void *p) { do_delete(p); }

static const struct kind {
    const char *name;
    void *(*get)(size_t);
    void (*put)(void *);
} kinds[] = {
    {"malloc", get_malloc, put_free},   {"calloc", get_calloc, put_free},
    {"aligned", get_aligned, put_free}, {"page", get_page, put_free},
    {"new", get_new, put_delete},
};
#define KINDS (sizeof kinds / sizeof *kinds)

static const struct kind *kind = &kinds[0];

/* With content, as a program's blocks have it; those of calloc stay zeroed. */
static char *get(size_t n)
{
    char *p = kind->get(n);
    if (p == NULL)
        _exit(FAILED);
    if (kind->get != get_calloc)
        memset(p, 0x5a, n < PAGE ? n : PAGE);
    return p;
}

/* With others around it that stay in use. */
static char *get_among(size_t n)
{
    for (int i = 0; i < NEIGHBOURS; i++)
        get(n);
    char *p = get(n);
    for (int i = 0; i < NEIGHBOURS; i++)
        get(n);
    return p;
}

static void put(void *p) { kind->put(p); }

static void put_wrongly(void *p)
{
    say("before\n");
    put(p);
    say("after\n");
}

static void realloc_wrongly(void *p, size_t n)
{
    say("before\n");
    void *q = do_realloc(p, n);
    say("after\n");
    do_free(q);
}

static void go_on(size_t n)
{
    void *blocks[MORE];
    for (int turn = 0; turn < 2; turn++) {
        for (int i = 0; i < MORE; i++)
            memset(blocks[i] = get(n), turn, 16);
        for (int i = 0; i < MORE; i++)
            put(blocks[i]);
    }
}

/* ---- freed twice ---- */

static void twice(size_t n, size_t unused)
{
    (void)unused;
    char *p = get_among(n);
    put(p);
    put_wrongly(p);
}

/* `count` other blocks are freed between. */
static void twice_after(size_t n, size_t count)
{
    static void *others[1000];
    for (size_t i = 0; i < count; i++)
        others[i] = get(n);
    char *p = get_among(n);
    put(p);
    for (size_t i = 0; i < count; i++)
        put(others[i]);
    put_wrongly(p);
}

/* The program has written to it, as one that uses freed memory does. */
static void twice_after_writing(size_t n, size_t count)
{
    char *q = get(n), *p = get_among(n);
    put(p);
    memset(p, 3, n < PAGE ? n : PAGE);
    if (count > 0)
        put(q);
    put_wrongly(p);
}

static void twice_after_other_sizes(size_t n, size_t count)
{
    static const size_t sizes[] = {40, 300, 3000, 48};
    void *others[20];
    for (size_t i = 0; i < count; i++)
        others[i] = get(sizes[i % 4]);
    char *p = get_among(n);
    put(p);
    for (size_t i = 0; i < count; i++)
        put(others[i]);
    put_wrongly(p);
}

static void twice_after_realloc(size_t n, size_t unused)
{
    (void)unused;
    char *p = get_among(n);
    char *q = do_realloc(p, 4 * n + PAGE);
    if (q == p)
        _exit(NOT_HERE);
    put_wrongly(p);
}

/* What the wrong call frees is by then another owner's, who frees it in turn. */
static void twice_after_reuse(size_t n, size_t unused)
{
    (void)unused;
    char *p = get_among(n);
    put(p);
    char *q = NULL;
    for (int i = 0; i < 1000 && q != p; i++)
        q = get(n);
    if (q != p)
        _exit(NOT_HERE);
    put_wrongly(p);
    put(q);
}

/* ---- with another thread ---- */

static pthread_barrier_t turn;
static void *handed;
static bool hands_wrongly;

static void *free_and_stay(void *unused)
{
    put(get(40)); /* it has used the heap before */
    pthread_barrier_wait(&turn);
    if (hands_wrongly)
        put_wrongly(handed);
    else
        put(handed);
    pthread_barrier_wait(&turn);
    pthread_barrier_wait(&turn); /* idle until the end */
    return unused;
}

static pthread_t begin_thread(void)
{
    pthread_t thread;
    pthread_barrier_init(&turn, NULL, 2);
    if (pthread_create(&thread, NULL, free_and_stay, NULL) != 0)
        _exit(FAILED);
    return thread;
}

static void meet(void) { pthread_barrier_wait(&turn); }

static void thread_then_main(size_t n, size_t unused)
{
    (void)unused;
    pthread_t thread = begin_thread();
    char *p = handed = get_among(n);
    meet();
    meet();
    put_wrongly(p);
    go_on(n);
    meet();
    pthread_join(thread, NULL);
}

static void main_then_thread(size_t n, size_t unused)
{
    (void)unused;
    pthread_t thread = begin_thread();
    char *p = handed = get_among(n);
    hands_wrongly = true;
    put(p);
    meet();
    meet();
    go_on(n);
    meet();
    pthread_join(thread, NULL);
}

static void ended_thread_then_main(size_t n, size_t unused)
{
    (void)unused;
    pthread_t thread = begin_thread();
    char *p = handed = get_among(n);
    meet();
    meet();
    meet();
    pthread_join(thread, NULL);
    put_wrongly(p);
}

/* ---- realloc ---- */

static void realloc_of_freed(size_t n, size_t count)
{
    void *others[20];
    for (size_t i = 0; i < count; i++)
        others[i] = get(n);
    char *p = get_among(n);
    put(p);
    for (size_t i = 0; i < count; i++)
        put(others[i]);
    realloc_wrongly(p, n + n / 2 + 1);
}

static void realloc_inside(size_t n, size_t offset)
{
    if (offset >= n)
        _exit(NOT_HERE);
    realloc_wrongly(get_among(n) + offset, n + n / 2 + 1);
}

/* ---- inside a block ---- */

static void inside(size_t n, size_t offset)
{
    if (offset >= n)
        _exit(NOT_HERE);
    put_wrongly(get_among(n) + offset);
}

static void inside_half(size_t n, size_t unused)
{
    (void)unused;
    inside(n, n / 2);
}

/* The last multiple of 16. */
static void inside_last(size_t n, size_t unused)
{
    (void)unused;
    if (n <= 16)
        _exit(NOT_HERE);
    inside(n, (n - 1) / 16 * 16);
}

/* ---- never a block ---- */

/* Where the next block but `further` would begin: as far behind the newest as that is behind the
 * one before. Blocks that are unmapped when freed have no such place. */
static void never_handed_out(size_t n, size_t further)
{
    char *before = get_among(n);
    for (int i = 0; i < 100; i++) {
        char *a = get(n), *b = get(n);
        if (a - before == b - a && b > a && (size_t)(b - a) < 2 * n + PAGE) {
            put_wrongly(b + (ptrdiff_t)(further + 1) * (b - a));
            return;
        }
        before = b;
    }
    _exit(NOT_HERE);
}

static char of_the_program[1 << 17] __attribute__((aligned(64)));

static void foreign_static(size_t unused, size_t offset)
{
    (void)unused;
    put(get(40));
    put_wrongly(of_the_program + 1024 + offset);
}

static void foreign_stack(size_t unused, size_t offset)
{
    (void)unused;
    volatile char array[1024] __attribute__((aligned(64)));
    memset((char *)array, 0, sizeof array);
    put(get(40));
    put_wrongly((char *)array + 512 + offset);
}

static void foreign_mapped(size_t unused, size_t offset)
{
    (void)unused;
    char *p = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    put(get(40));
    put_wrongly(p + offset);
}

static void foreign_number(size_t unused, size_t number)
{
    (void)unused;
    put(get(40));
    put_wrongly((void *)number);
}

/* ---- the classical programs, with nothing before and nothing beside ---- */

static void small_twice(size_t n, size_t unused)
{
    (void)unused;
    void *p = do_malloc(n);
    do_free(p);
    put_wrongly(p);
}

static void small_a_b_a(size_t n, size_t unused)
{
    (void)unused;
    void *a = do_malloc(n), *b = do_malloc(n);
    do_free(a);
    do_free(b);
    put_wrongly(a);
}

static void small_inside(size_t n, size_t offset)
{
    char *p = do_malloc(n);
    put_wrongly(p + offset);
}

static void small_stack(size_t unused, size_t unused_too)
{
    (void)unused;
    (void)unused_too;
    int number[4] __attribute__((aligned(16))) = {0};
    put_wrongly(number);
}

static void small_static(size_t unused, size_t unused_too)
{
    (void)unused;
    (void)unused_too;
    static int number[4] __attribute__((aligned(16)));
    put_wrongly(number);
}

static void small_realloc_of_freed(size_t n, size_t unused)
{
    (void)unused;
    void *p = do_malloc(n);
    do_free(p);
    realloc_wrongly(p, 2 * n);
}

static void small_twice_across_realloc(size_t n, size_t unused)
{
    (void)unused;
    void *p = do_malloc(n), *q = do_malloc(n);
    void *moved = do_realloc(p, 100 * n);
    if (moved == p)
        _exit(NOT_HERE);
    put_wrongly(p);
    do_free(q);
    do_free(moved);
}

static void small_never_handed_out(size_t n, size_t unused)
{
    (void)unused;
    char *a = do_malloc(n), *b = do_malloc(n);
    if (b <= a)
        _exit(NOT_HERE);
    put_wrongly(b + (b - a));
}

/* ---- all of them ---- */

static const struct test_case {
    const char *name;
    void (*run)(size_t n, size_t argument);
    size_t argument;
} cases[] = {
    {"twice", twice, 0},
    {"twice_after_1", twice_after, 1},
    {"twice_after_20", twice_after, 20},
    {"twice_after_1000", twice_after, 1000},
    {"twice_after_20_of_other_sizes", twice_after_other_sizes, 20},
    {"twice_after_writing", twice_after_writing, 0},
    {"twice_after_writing_and_1", twice_after_writing, 1},
    {"twice_thread_then_main", thread_then_main, 0},
    {"twice_main_then_thread", main_then_thread, 0},
    {"twice_ended_thread_then_main", ended_thread_then_main, 0},
    {"twice_after_realloc", twice_after_realloc, 0},
    {"twice_after_reuse", twice_after_reuse, 0},
    {"realloc_of_freed", realloc_of_freed, 0},
    {"realloc_of_freed_after_20", realloc_of_freed, 20},
    {"realloc_inside_16", realloc_inside, 16},
    {"inside_1", inside, 1},
    {"inside_8", inside, 8},
    {"inside_16", inside, 16},
    {"inside_half", inside_half, 0},
    {"inside_last", inside_last, 0},
    {"inside_65536", inside, 65536},
    {"never_handed_out_next", never_handed_out, 0},
    {"never_handed_out_50th", never_handed_out, 49},
    {"foreign_static", foreign_static, 0},
    {"foreign_static_8", foreign_static, 8},
    {"foreign_stack", foreign_stack, 0},
    {"foreign_stack_8", foreign_stack, 8},
    {"foreign_mapped", foreign_mapped, 0},
    {"foreign_mapped_page", foreign_mapped, PAGE},
    {"foreign_mapped_16", foreign_mapped, PAGE + 16},
    {"foreign_number", foreign_number, 0x1234567890},
    {"small_twice", small_twice, 0},
    {"small_a_b_a", small_a_b_a, 0},
    {"small_inside", small_inside, 16},
    {"small_unaligned", small_inside, 8},
    {"small_stack", small_stack, 0},
    {"small_static", small_static, 0},
    {"small_twice_large", small_twice, 0},
    {"small_realloc_of_freed", small_realloc_of_freed, 0},
    {"small_twice_across_realloc", small_twice_across_realloc, 0},
    {"small_never_handed_out", small_never_handed_out, 0},
    {"small_a_b_a_large", small_a_b_a, 0},
};
#define CASES (sizeof cases / sizeof *cases)

static int print_cases(void)
{
    for (size_t i = 0; i < CASES; i++)
        puts(cases[i].name);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 1)
        return print_cases();
    const struct test_case *chosen = NULL;
    for (size_t i = 0; i < CASES && argc >= 3; i++)
        if (strcmp(argv[1], cases[i].name) == 0)
            chosen = &cases[i];
    if (argc > 3)
        for (size_t i = 0; i < KINDS; i++)
            if (strcmp(argv[3], kinds[i].name) == 0)
                kind = &kinds[i];
    if (chosen == NULL || (argc > 3 && strcmp(argv[3], kind->name) != 0))
        return 2;
    size_t n = strtoul(argv[2], NULL, 10);
    chosen->run(n, chosen->argument);
    go_on(n);
    say("went on\n");
    return 0;
}

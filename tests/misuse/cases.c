/* One misuse for each run: `misuse_FORM [--go-on] CASE [NUMBER]`, NUMBER being a size or an
 * address. Prints "culprit ADDRESS" before the wrong call; what hakmem then says on standard error
 * is judged by test_misuse.py. --go-on sets the policy where the insides are linked in
 * (MISUSE_INSIDES), and is the environment's task elsewhere; then the program must come to its end,
 * with a heap that holds what was written to it. */
#include "cases.h"

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#ifdef MISUSE_INSIDES
#include "back/meta.h"
#include "base/policy.h"
#endif

#define MANY 100000

static void *blocks[MANY];
static unsigned n_blocks;

volatile bool malloc_forbidden;

void culprit(const void *p)
{
    char line[64];
    int length = snprintf(line, sizeof line, "culprit 0x%zx\n", (size_t)p);
    if (write(STDOUT_FILENO, line, (size_t)length) < 0)
        _exit(98);
}

void watched_free(void *p)
{
    malloc_forbidden = true;
    do_free(p);
    malloc_forbidden = false;
}

void wrong_free(void *p)
{
    culprit(p);
    watched_free(p);
}

void *get(size_t n)
{
    unsigned char *p = do_malloc(n);
    if (p == NULL)
        _exit(77);
    memset(p, 1, n < 64 ? n : 64);
    return p;
}

/* One among others that stay in use, so that its slab stays too. */
static void *get_among_others(size_t n)
{
    void *some[64];
    for (unsigned i = 0; i < 64; i++)
        some[i] = get(n);
    return some[32];
}

/* Blocks of one size, whose frees make every cache overflow. */
static void have_many(size_t n)
{
    size_t count = (32 << 20) / (n + 16);
    n_blocks = count < MANY ? (unsigned)count : MANY;
    for (unsigned i = 0; i < n_blocks; i++)
        blocks[i] = get(n);
}

static void free_many(void)
{
    for (unsigned i = 0; i < n_blocks; i++)
        watched_free(blocks[i]);
}

/* ---- never a block ---- */

static char of_the_program[64] __attribute__((aligned(64)));

CASE(foreign_static) { wrong_free(of_the_program + n); }

CASE(foreign_stack)
{
    volatile char array[64] __attribute__((aligned(64)));
    array[0] = 1;
    wrong_free((void *)array);
}

CASE(foreign_mapping)
{
    wrong_free(mmap(NULL, 1 << 22, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
}

CASE(foreign_number) { wrong_free((void *)n); }

CASE(foreign_number_warm)
{
    do_free(get(100));
    wrong_free((void *)n);
}

/* Superslabs hold more slices than one block needs, and slabs of small blocks are one slice. */
CASE(free_slice) { wrong_free((void *)(((uintptr_t)get(100) & ~(uintptr_t)0xffff) + 0x10000)); }

#ifdef MISUSE_INSIDES
CASE(metadata)
{
    get(100);
    wrong_free(meta_take(n));
}
#endif

/* ---- beside a block's start ---- */

CASE(inside)
{
    char *p = get(n);
    wrong_free(p + n / 2 / 16 * 16);
}

CASE(unaligned)
{
    char *p = get(n);
    wrong_free(p + 8);
}

/* Some classes don't fill their slabs. Slabs lie on multiples of 64 KiB. */
CASE(behind_the_last_block)
{
    char *p = get(n);
    size_t usable = do_usable_size(p);
    wrong_free((char *)((uintptr_t)p & ~(uintptr_t)0xffff) + 0x10000 / usable * usable);
}

CASE(realloc_inside)
{
    char *p = get(n);
    culprit(p + n / 2 / 16 * 16);
    errno = 0;
    malloc_forbidden = true;
    void *other = do_realloc(p + n / 2 / 16 * 16, 2 * n);
    malloc_forbidden = false;
    printf("realloc %p, errno %s\n", other, errno == EINVAL ? "EINVAL" : "other");
}

CASE(realloc_foreign)
{
    culprit(of_the_program);
    errno = 0;
    malloc_forbidden = true;
    void *other = do_realloc(of_the_program, n);
    malloc_forbidden = false;
    printf("realloc %p, errno %s\n", other, errno == EINVAL ? "EINVAL" : "other");
}

CASE(usable_inside)
{
    char *p = get(n);
    culprit(p + n / 2 / 16 * 16);
    printf("usable %zu\n", do_usable_size(p + n / 2 / 16 * 16));
}

CASE(usable_foreign)
{
    culprit(of_the_program);
    printf("usable %zu\n", do_usable_size(of_the_program));
}

/* ---- twice ---- */

CASE(twice)
{
    void *p = get(n);
    do_free(p);
    wrong_free(p);
}

CASE(realloc_after_free)
{
    void *p = get(n);
    do_free(p);
    culprit(p);
    errno = 0;
    malloc_forbidden = true;
    void *other = do_realloc(p, n + 100);
    malloc_forbidden = false;
    printf("realloc %p, errno %s\n", other, errno == EINVAL ? "EINVAL" : "other");
}

CASE(twice_with_one_between)
{
    void *a = get_among_others(n), *b = get(n);
    do_free(a);
    do_free(b);
    wrong_free(a);
}

/* The block is in its slab by then, or on its way to other threads. */
CASE(twice_with_a_flush_between)
{
    void *a = get_among_others(n);
    have_many(n);
    do_free(a);
    free_many();
    wrong_free(a);
}

/* Its page has gone back to the kernel, and the word in it that tells that it is free. */
static void *freed_and_trimmed(size_t n)
{
    void *p = get_among_others(n);
    do_free(p);
    NAME_UNDER_TEST(malloc_trim)(0);
    return p;
}

CASE(twice_after_a_trim) { wrong_free(freed_and_trimmed(n)); }

static void run_thread(void *(*work)(void *), void *argument)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, work, argument) != 0)
        _exit(77);
    pthread_join(thread, NULL);
}

/* ---- found late ----
 *
 * What tells that a block is free is in its second word: gone when the program has written to it.
 * The block is in the stack twice then, and found when the second of the two goes to its slab. */

static void free_write_free(void *a, void *b)
{
    do_free(a);
    memset(a, 3, 16);
    do_free(b); /* the last one freed is known without the word */
    wrong_free(a);
}

CASE(written_between_found_by_flush)
{
    void *a = get_among_others(n), *b = get(n);
    have_many(n);
    free_write_free(a, b);
    free_many();
}

static void *free_write_free_two(void *argument)
{
    void **two = argument;
    free_write_free(two[0], two[1]);
    return NULL;
}

CASE(written_between_found_at_thread_end)
{
    void *two[2] = {get_among_others(n), get(n)};
    run_thread(free_write_free_two, two);
}

/* By a function that has no pointer of its own. */
CASE(written_between_found_by_trim)
{
    free_write_free(get_among_others(n), get(n));
    NAME_UNDER_TEST(malloc_trim)(0);
}

CASE(written_between_found_by_exit)
{
    free_write_free(get_among_others(n), get(n));
    puts("end");
    exit(0);
}

/* A block that no malloc has returned looks like one in use until it goes to its slab. */
CASE(never_handed_out_found_by_exit)
{
    char *p = get(n);
    size_t usable = do_usable_size(p);
    wrong_free((char *)((uintptr_t)p & ~(uintptr_t)0xffff) + (0x10000 / usable - 1) * usable);
    puts("end");
    exit(0);
}

/* ---- large blocks ---- */

CASE(twice_among_others)
{
    void *six[6];
    for (int i = 0; i < 6; i++)
        six[i] = get(n);
    for (int i = 0; i < 6; i++)
        if (i != 1) /* so that what lies beside it stays mapped */
            do_free(six[i]);
    wrong_free(six[0]); /* the thread's stack was emptied, as so much lay idle */
}

/* ---- the program goes on ---- */

CASE(times)
{
    for (size_t i = 0; i < n; i++)
        wrong_free(of_the_program);
}

#define SLOTS 2000

/* Random sizes, each block filled with its slot's number; a heap that handed memory out twice, or
 * lost what was in it, shows. */
static void check_heap(void)
{
    static unsigned char *slots[SLOTS];
    static size_t sizes[SLOTS];
    uint64_t random = 1;
    for (unsigned i = 0; i < 150000; i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        unsigned slot = (unsigned)(random >> 40) % SLOTS;
        size_t n = (random >> 20) % (i % 500 == 0 ? 400000 : 1200) + 1;
        for (size_t j = 0; j < sizes[slot]; j++)
            if (slots[slot][j] != (unsigned char)(slot * 7 + 1)) {
                printf("block %p of %zu bytes, byte %zu: expected %02x, found %02x\n",
                       (void *)slots[slot], sizes[slot], j, (slot * 7 + 1) & 0xff, slots[slot][j]);
                exit(1);
            }
        if (random >> 63) {
            slots[slot] = do_realloc(slots[slot], n);
        } else {
            do_free(slots[slot]);
            slots[slot] = do_malloc(n);
        }
        if (slots[slot] == NULL)
            exit(77);
        sizes[slot] = n;
        memset(slots[slot], (int)(slot * 7 + 1), n);
    }
    puts("the heap is whole");
}

/* ---- */

struct test_case *test_cases;

int main(int count, char **arguments)
{
    const struct rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
    alarm(300);
    setvbuf(stdout, NULL, _IONBF, 0);
    char **argument = arguments + 1;
    bool go_on = count > 1 && strcmp(*argument, "--go-on") == 0;
    if (go_on) {
#ifdef MISUSE_INSIDES
        policy.abort_on_misuse = 0;
#endif
        argument++;
    }
    if (*argument == NULL)
        return 2;
    const struct test_case *c = test_cases;
    while (c != NULL && strcmp(c->name, *argument) != 0)
        c = c->next;
    if (c == NULL) {
        printf("no case %s\n", *argument);
        return 2;
    }
    c->run(argument[1] == NULL ? 0 : strtoull(argument[1], NULL, 0));
    if (go_on)
        check_heap();
    puts("end");
    return 0;
}

/* Frees of what is free already, and of what never was a block. */
#include "kinds.h"

#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

static void free_wrongly(void *p) { WRONGLY(do_free(p)); }

/* ---- twice ---- */

/* number: how many others are freed between. */
static const char *twice(void)
{
    static char *others[1000];
    for (long i = 0; i < number; i++)
        others[i] = get(OTHERS);
    char *p = get_among();
    do_free(p);
    for (long i = 0; i < number; i++)
        do_free(others[i]);
    free_wrongly(p);
    return take_many(NULL, NULL);
}

/* With nothing before it and nothing beside it, as in the smallest program. */
static const char *twice_alone(void)
{
    char *p = do_malloc(bytes), *other = number == 0 ? NULL : do_malloc(bytes);
    do_free(p);
    do_free(other);
    free_wrongly(p);
    return take_many(NULL, NULL);
}

static const char *twice_after_other_sizes(void)
{
    static const size_t sizes[] = {40, 300, 3000, 48};
    char *others[20];
    for (size_t i = 0; i < 20; i++)
        others[i] = do_malloc(sizes[i % 4]);
    char *p = get_among();
    do_free(p);
    for (size_t i = 0; i < 20; i++)
        do_free(others[i]);
    free_wrongly(p);
    return take_many(NULL, NULL);
}

/* number: others are allocated and freed between, one by one, with the address perhaps reused. */
static const char *twice_after_turns(void)
{
    char *p = get_among();
    do_free(p);
    for (long i = 0; i < number; i++)
        do_free(do_malloc(bytes));
    free_wrongly(p);
    return take_many(NULL, NULL);
}

static void *free_in_thread(void *p)
{
    do_free(do_malloc(40));
    if (number == 1)
        free_wrongly(p);
    else
        do_free(p);
    return NULL;
}

static void in_thread(void *p)
{
    pthread_t thread;
    pthread_create(&thread, NULL, free_in_thread, p);
    pthread_join(thread, NULL);
}

static const char *twice_with_thread(void)
{
    char *p = get_among();
    if (number == 0)
        in_thread(p);
    else
        do_free(p);
    if (number == 0)
        free_wrongly(p);
    else
        in_thread(p);
    return take_many(NULL, NULL);
}

static pthread_barrier_t turn;

/* number 1: it is this thread that frees wrongly. It does not end before the program has gone on.
 */
static void *free_and_stay(void *p)
{
    do_free(do_malloc(40));
    pthread_barrier_wait(&turn);
    if (number == 1)
        free_wrongly(p);
    else
        do_free(p);
    pthread_barrier_wait(&turn);
    pthread_barrier_wait(&turn);
    return NULL;
}

static const char *twice_with_idle_thread(void)
{
    char *p = get_among();
    pthread_t thread;
    pthread_barrier_init(&turn, NULL, 2);
    pthread_create(&thread, NULL, free_and_stay, p);
    if (number == 1)
        do_free(p);
    pthread_barrier_wait(&turn);
    pthread_barrier_wait(&turn);
    if (number == 0)
        free_wrongly(p);
    const char *found = take_many(NULL, NULL);
    pthread_barrier_wait(&turn);
    pthread_join(thread, NULL);
    return found;
}

static const char *twice_after_realloc(void)
{
    char *p = get_among();
    char *q = do_realloc(p, 3 * bytes);
    if (q == p)
        return "absent";
    free_wrongly(p);
    do_free(q);
    return take_many(NULL, NULL);
}

static const char *twice_after_realloc_to_nothing(void)
{
    char *p = get_among();
    void *q = do_realloc(p, 0);
    free_wrongly(p);
    do_free(q);
    return take_many(NULL, NULL);
}

/* The second free takes the block from its new owner, who frees it at the end. */
static const char *twice_after_reuse(void)
{
    static char *others[2000];
    char *p = get_among();
    size_t most = bytes > 100000 ? 20 : 2000, at = 0;
    do_free(p);
    while (at < most && (others[at] = do_malloc(bytes)) != p)
        at++;
    if (at == most)
        return "apart";
    memset(others[at], OTHERS, edge);
    free_wrongly(p);
    return take_many(others[at], NULL);
}

static const char *realloc_after_free_20(void)
{
    char *others[20];
    for (size_t i = 0; i < 20; i++)
        others[i] = get(OTHERS);
    char *p = get_among();
    do_free(p);
    for (size_t i = 0; i < 20; i++)
        do_free(others[i]);
    WRONGLY(void *q = do_realloc(p, 3 * bytes));
    finish(q);
    return q == NULL ? "null" : "unnoticed";
}

static const char *realloc_after_free(void)
{
    char *p = get_among();
    do_free(p);
    WRONGLY(void *q = do_realloc(p, number == 0 ? 3 * bytes : bytes));
    finish(q);
    return q == NULL ? "null" : "unnoticed";
}

/* ---- beside a block's start ---- */

enum { HALF = -1, LAST = -2 };

static const char *inside(void)
{
    char *p = get_among();
    size_t offset = number == HALF   ? bytes / 2 / 16 * 16
                    : number == LAST ? (bytes - 1) / 16 * 16
                                     : (size_t)number;
    free_wrongly(p + offset);
    return finish(p);
}

static const char *realloc_inside(void)
{
    char *p = get_among();
    WRONGLY(void *q = do_realloc(p + number, 3 * bytes));
    finish(q);
    return q == NULL ? "null" : "unnoticed";
}

/* ---- of other functions ---- */

void *cxx_new(size_t n) __asm__("_Znwm");
void cxx_delete(void *p) __asm__("_ZdlPv");

enum { CALLOC, ALIGNED, PAGES, NEW, TWICE = 0, MIDDLE = 10 };

static char *made(long function)
{
    switch (function) {
    case CALLOC:
        return do_calloc(1, bytes);
    case ALIGNED:
        return do_aligned_alloc(64, (bytes + 63) / 64 * 64);
    case PAGES:
        return do_aligned_alloc(PAGE, (bytes + PAGE - 1) / PAGE * PAGE);
    default:
        return cxx_new(bytes);
    }
}

/* number: which function, and TWICE or MIDDLE. */
static const char *of_another_function(void)
{
    long function = number % MIDDLE;
    void (*volatile put)(void *) = function == NEW ? cxx_delete : do_free;
    char *below = made(function), *p = made(function), *above = made(function);
    if (number < MIDDLE)
        put(p);
    WRONGLY(put(number < MIDDLE ? p : p + bytes / 2 / 16 * 16));
    put(below);
    put(above);
    return take_many(NULL, NULL);
}

/* ---- never a block ---- */

static const char *number_as_block(void)
{
    do_free(get(OWN));
    free_wrongly((void *)number);
    return finish(NULL);
}

static const char *first_call(void)
{
    free_wrongly((void *)number);
    return "unnoticed";
}

static const char *first_realloc(void)
{
    WRONGLY(void *p = do_realloc((void *)number, 16));
    return p == NULL ? "null" : "unnoticed";
}

static char of_the_program[1 << 17] __attribute__((aligned(1 << 16)));

static const char *static_memory(void)
{
    do_free(get(OWN));
    free_wrongly(of_the_program + PAGE + number);
    return finish(NULL);
}

static const char *stack_memory(void)
{
    volatile char array[1024] __attribute__((aligned(64)));
    array[0] = 1;
    do_free(get(OWN));
    free_wrongly((char *)array + 512 + number);
    return finish(NULL);
}

static const char *mapped_memory(void)
{
    char *p = mmap(NULL, 1 << 20, (int)number, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    do_free(get(OWN));
    free_wrongly(p + PAGE);
    return finish(NULL);
}

/* As if the program had made it up to look like a block of glibc's. */
static const char *forged(void)
{
    uintptr_t *words = (uintptr_t *)(of_the_program + PAGE);
    words[-1] = 0x31;
    words[5] = 0x31;
    do_free(get(OWN));
    WRONGLY(do_free(words));
    return take_many(NULL, (char *)words);
}

/* Where places are chosen by chance, a block that was got may lie where the free is to go. */
static bool is_next_to(const char *p, const char *last)
{
    return p > last && (size_t)(p - last) <= 2 * bytes + PAGE && !was_got(p + (p - last) * number);
}

/* Where a block could be, `number` of them behind the newest. */
static const char *never_handed_out(void)
{
    get_among();
    char *last = get(OWN), *p = get(OWN);
    for (int i = 0; i < 100 && !is_next_to(p, last); i++) {
        last = p;
        p = get(OWN);
    }
    if (!is_next_to(p, last))
        return "absent";
    free_wrongly(p + (p - last) * number);
    return take_many(p, NULL);
}

static const char *far_from_block(void)
{
    char *p = get_among();
    free_wrongly(p + number);
    return finish(p);
}

/* ---- */

const struct kind kinds_of_frees[] = {
    {"double_free", twice, ALL, 0, "ended", "frees a block twice in a row"},
    {"double_free_after_1", twice, ALL, 1, "ended", "frees it again after another"},
    {"double_free_after_20", twice, ALL, 20, "ended", "frees it again after 20 others"},
    {"double_free_after_1000", twice, FEW_BYTES, 1000, "ended",
     "frees it again after 1,000 others"},
    {"double_free_alone", twice_alone, SMALL | LARGE, 0, "ended",
     "frees twice the only block that there is"},
    {"double_free_alone_after_1", twice_alone, SMALL | LARGE, 1, "ended",
     "frees it again after the only other one"},
    {"double_free_after_other_sizes", twice_after_other_sizes, ALL, 0, "ended",
     "frees it again after 20 others of other sizes"},
    {"double_free_after_turns", twice_after_turns, ALL, 100, "ended",
     "frees it again after 100 pairs of malloc and free"},
    {"double_free_thread_then_main", twice_with_thread, ALL, 0, "ended",
     "a thread frees it and ends, then main does"},
    {"double_free_main_then_thread", twice_with_thread, ALL, 1, "ended",
     "main frees it, then a thread"},
    {"double_free_idle_thread_then_main", twice_with_idle_thread, ALL, 0, "ended",
     "a thread frees it and waits, then main does"},
    {"double_free_main_then_idle_thread", twice_with_idle_thread, ALL, 1, "ended",
     "main frees it, then a thread that waits afterwards"},
    {"double_free_calloc", of_another_function, ALL, TWICE + CALLOC, "ended",
     "frees a block of calloc twice"},
    {"double_free_aligned", of_another_function, ALL, TWICE + ALIGNED, "ended",
     "frees a block of aligned_alloc twice, at a multiple of 64"},
    {"double_free_pages", of_another_function, ALL, TWICE + PAGES, "ended",
     "frees a block of aligned_alloc twice, at a multiple of a page"},
    {"double_delete", of_another_function, ALL, TWICE + NEW, "ended",
     "deletes a block of operator new twice"},
    {"free_inside_calloc", of_another_function, ALL, MIDDLE + CALLOC, "ended",
     "frees an address in the middle of a block of calloc"},
    {"free_inside_aligned", of_another_function, ALL, MIDDLE + ALIGNED, "ended",
     "frees an address in the middle of a block of aligned_alloc"},
    {"free_inside_pages", of_another_function, ALL, MIDDLE + PAGES, "ended",
     "frees an address in the middle of a block of aligned_alloc, at a multiple of a page"},
    {"delete_inside", of_another_function, ALL, MIDDLE + NEW, "ended",
     "deletes an address in the middle of a block of operator new"},
    {"double_free_after_realloc", twice_after_realloc, ALL, 0, "ended",
     "frees what realloc has moved"},
    {"double_free_after_realloc_0", twice_after_realloc_to_nothing, ONE, 0, "ended",
     "frees a block after realloc(p, 0)"},
    {"double_free_after_reuse", twice_after_reuse, ALL, 0, "ended, apart",
     "frees it again when it is another owner's"},
    {"realloc_after_free", realloc_after_free, ALL, 0, "ended, null",
     "realloc of a free block to a larger size"},
    {"realloc_after_free_20", realloc_after_free_20, ALL, 0, "ended, null",
     "realloc of a free block after 20 frees of others"},
    {"realloc_after_free_same", realloc_after_free, ALL, 1, "ended, null",
     "realloc of a free block to its own size"},
    {"free_inside_1", inside, ALL, 1, "ended", "frees an address 1 byte into a block"},
    {"free_inside_8", inside, ALL, 8, "ended", "frees an address 8 bytes into a block"},
    {"free_inside_16", inside, ALL, 16, "ended", "frees an address 16 bytes into a block"},
    {"free_inside_half", inside, ALL, HALF, "ended", "frees an address in the middle of a block"},
    {"free_inside_last", inside, ALL, LAST, "ended", "frees the last multiple of 16 in a block"},
    {"free_inside_65536", inside, LARGE | HUGE, 65536, "ended",
     "frees an address 64 KiB into a block"},
    {"realloc_inside_16", realloc_inside, ALL, 16, "ended, null",
     "realloc of an address 16 bytes into a block"},
    {"free_number_1", number_as_block, ONE, 1, "ended", "frees the number 1"},
    {"free_number_4096", number_as_block, ONE, 4096, "ended", "frees the number 4096"},
    {"free_number_random", number_as_block, ONE, 0x123456789ab0, "ended",
     "frees an address without memory"},
    {"free_number_impossible", number_as_block, ONE, 0x7eadbeef12345670, "ended",
     "frees a number that can't be an address"},
    {"uninitialized_free", first_call, ONE, 1, "ended",
     "frees the number 1 as the first call of all"},
    {"uninitialized_realloc", first_realloc, ONE, 1, "ended, null",
     "realloc of the number 1 as the first call of all"},
    {"free_static", static_memory, ONE, 0, "ended", "frees static memory"},
    {"free_static_8", static_memory, ONE, 8, "ended",
     "frees static memory, not at a multiple of 16"},
    {"free_stack", stack_memory, ONE, 0, "ended", "frees an array on the stack"},
    {"free_stack_8", stack_memory, ONE, 8, "ended",
     "frees an array on the stack, not at a multiple of 16"},
    {"free_mapped", mapped_memory, ONE, PROT_READ | PROT_WRITE, "ended",
     "frees a page of what mmap returned"},
    {"free_mapped_protected", mapped_memory, ONE, PROT_NONE, "ended",
     "frees a page of what mmap returned without access"},
    {"free_forged", forged, ONE, 0, "ended, apart",
     "frees static memory that looks like a block of glibc, then allocates"},
    {"free_never_handed_out", never_handed_out, ALL, 1, "ended",
     "frees where the next new block will be"},
    {"free_never_handed_out_50", never_handed_out, SMALL | MID, 50, "ended",
     "frees where the 50th new block will be"},
    {"free_far", far_from_block, SMALL | LARGE, 1 << 30, "ended", "frees 1 GiB past a block"},
    {0},
};

/* Wrong sizes, questions about what is no block, and calls of correct programs, which must work. */
#include "kinds.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

static const char *ok_if(bool right) { return right ? "ok" : "wrong"; }

/* ---- sizes, and which function frees ---- */

void *cxx_new(size_t n) __asm__("_Znwm");
void *cxx_new_aligned(size_t n, size_t align) __asm__("_ZnwmSt11align_val_t");
void cxx_delete(void *p) __asm__("_ZdlPv");
void cxx_delete_sized(void *p, size_t n) __asm__("_ZdlPvm");
void cxx_delete_aligned(void *p, size_t n, size_t align) __asm__("_ZdlPvmSt11align_val_t");
void cxx_delete_array(void *p) __asm__("_ZdaPv");

/* number: which part of its size is said, in percent. */
static size_t said(void) { return bytes * (size_t)number / 100; }

static const char *end_of(void)
{
    say_after();
    const char *found = finish(NULL);
    return number == 100 ? "ok" : found;
}

static const char *sized_delete(void)
{
    get_among();
    void *p = cxx_new(bytes);
    say_before();
    cxx_delete_sized(p, said());
    return end_of();
}

static const char *aligned_sized_delete(void)
{
    get_among();
    void *p = cxx_new_aligned(bytes, 64);
    say_before();
    cxx_delete_aligned(p, said(), 64);
    return end_of();
}

static const char *free_with_size(void)
{
    void (*volatile sized)(void *, size_t) = function("free_sized");
    if (sized == NULL)
        return "absent";
    char *p = get_among();
    say_before();
    sized(p, said());
    return end_of();
}

static const char *aligned_free_with_size(void)
{
    void (*volatile sized)(void *, size_t, size_t) = function("free_aligned_sized");
    if (sized == NULL)
        return "absent";
    get_among();
    char *p = do_aligned_alloc(64, (bytes + 63) / 64 * 64);
    say_before();
    sized(p, 64, (said() + 63) / 64 * 64);
    return end_of();
}

/* number: 0 malloc and delete, 1 new and free, 2 new and delete[]. */
static const char *other_function(void)
{
    get_among();
    void *p = number == 0 ? do_malloc(bytes) : cxx_new(bytes);
    say_before();
    if (number == 0)
        cxx_delete(p);
    else if (number == 1)
        do_free(p);
    else
        cxx_delete_array(p);
    say_after();
    return finish(NULL);
}

/* ---- how long is what is no block? ---- */

typedef size_t (*question)(void *);

/* The functions of glibc and of hardened_malloc, the latter's with as many bytes as can be. */
static question ask_usable(void) { return (question)do_usable_size; }
static question ask_object(void) { return (question)function("malloc_object_size"); }

static const char *answer(question ask, void *p)
{
    WRONGLY(size_t found = ask(p));
    return found == 0 ? "null" : "size";
}

/* number: 0 just freed; 1 freed, and long ago; else an address so far into the block or past it. */
static const char *asked(question ask)
{
    if (ask == NULL)
        return "absent";
    char *p = get_among();
    if (number > 1) {
        const char *found = answer(ask, p + number);
        finish(p);
        return found;
    }
    do_free(p);
    if (number == 1)
        go_on();
    return answer(ask, p);
}

static const char *usable_size(void) { return asked(ask_usable()); }
static const char *object_size(void) { return asked(ask_object()); }
static const char *usable_first(void) { return answer(ask_usable(), (void *)number); }

static const char *usable_static(void)
{
    static char of_the_program[64] __attribute__((aligned(64)));
    do_free(get(OWN));
    return answer(ask_usable(), of_the_program + 16);
}

/* ---- what must work ---- */

static const char *object_size_right(void)
{
    question ask = ask_object();
    if (ask == NULL)
        return "absent";
    char *p = get_among();
    bool right = ask(p) >= bytes && ask(p + 5) >= bytes - 5;
    finish(p);
    return ok_if(right);
}

static const char *object_size_of_nothing(void)
{
    question ask = ask_object();
    if (ask == NULL)
        return "absent";
    void *p = do_malloc(0);
    bool right = ask(p) == 0;
    do_free(p);
    return ok_if(right);
}

static const char *impossible_sizes(void)
{
    char *p = get(OWN);
    bool right = do_malloc((size_t)number) == NULL && do_realloc(p, (size_t)number) == NULL &&
                 do_malloc(SIZE_MAX) == NULL && do_realloc(p, SIZE_MAX) == NULL &&
                 do_malloc(SIZE_MAX - PAGE) == NULL && p[0] == OWN;
    do_free(p);
    return ok_if(right);
}

static const char *overflowing_products(void)
{
    void *(*volatile array)(void *, size_t, size_t) = reallocarray;
    size_t half = (size_t)1 << 33;
    errno = 0;
    bool right = do_calloc(half, half) == NULL && errno == ENOMEM;
    errno = 0;
    char *p = get(OWN);
    right = right && array(p, half, half) == NULL && errno == ENOMEM && p[0] == OWN;
    do_free(p);
    return ok_if(right);
}

/* aligned_alloc of C17 need not refuse 3; posix_memalign must. */
static const char *wrong_alignments(void)
{
    void *p = NULL;
    bool right = do_posix_memalign(&p, 3, 64) == EINVAL && do_posix_memalign(&p, 4, 64) == EINVAL;
    errno = 0;
    void *q = do_aligned_alloc(3, 64);
    right = right && (q == NULL ? errno == EINVAL : (uintptr_t)q % 16 == 0);
    do_free(q);
    return ok_if(right);
}

static const char *nothing_aligned(void)
{
    void *p = do_aligned_alloc(64, 0);
    bool right = (uintptr_t)p % 64 == 0;
    do_free(p);
    return ok_if(right);
}

static const char *zeroed(void)
{
    do_free(get(OWN));
    char *p = do_calloc(1, bytes);
    bool right = strcmp(look_at(p, bytes), "zeros") == 0;
    do_free(p);
    return ok_if(right);
}

static const char *whole_pages(void)
{
    void *(*volatile take)(size_t) = function("pvalloc");
    if (take == NULL)
        return "absent";
    void *p = take(1);
    bool right = (uintptr_t)p % PAGE == 0 && do_usable_size(p) >= PAGE;
    do_free(p);
    return ok_if(right);
}

static const char *nothings_differ(void)
{
    void *p = do_malloc(0), *q = do_malloc(0);
    bool right = p != q;
    for (int i = 0; i < 512 && right; i++) {
        void *r = do_malloc(64);
        right = r != p && r != q;
        do_free(r);
    }
    do_free(p);
    do_free(q);
    return ok_if(right);
}

static const char *growth(void)
{
    char *p = NULL;
    bool right = true;
    for (size_t n = PAGE; n <= (size_t)64 << 20 && right; n *= 2) {
        p = do_realloc(p, n);
        right = p != NULL && (n == PAGE || (p[0] == 1 && p[n / 2 - 1] == 2));
        p[0] = 1;
        p[n - 1] = 2;
    }
    for (size_t n = (size_t)32 << 20; n >= PAGE && right; n /= 2) {
        p = do_realloc(p, n);
        right = p != NULL && p[0] == 1;
    }
    do_free(p);
    return ok_if(right);
}

static const char *sizes_apart(void)
{
    static char *blocks[2000];
    bool right = true;
    for (size_t i = 0; i < 2000; i++)
        memset(blocks[i] = do_malloc(i * 9 + 1), (int)(i % 251), i * 9 + 1);
    for (size_t i = 0; i < 2000; i++) {
        for (size_t j = 0; j < i * 9 + 1; j++)
            right = right && (unsigned char)blocks[i][j] == i % 251;
        do_free(blocks[i]);
    }
    return ok_if(right);
}

static void *grow(void *p) { return do_realloc(p, 1024); }

static const char *first_realloc_of_null(void)
{
    pthread_t thread;
    void *p = do_realloc(NULL, 12);
    pthread_create(&thread, NULL, grow, p);
    pthread_join(thread, &p);
    do_free(p);
    return ok_if(p != NULL);
}

static const char *realloc_to_nothing(void)
{
    do_free(do_realloc(get(OWN), 0));
    go_on();
    return "ok";
}

static const char *information(void)
{
    struct mallinfo2 (*volatile ask)(void) = mallinfo2;
    int (*volatile write_info)(int, FILE *) = malloc_info;
    do_free(get(OWN));
    ask();
    FILE *to = fopen("/dev/null", "w");
    bool right = to != NULL && write_info(0, to) == 0;
    if (to != NULL)
        fclose(to);
    return ok_if(right);
}

static const char *copies_within(void)
{
    void *(*volatile copy)(void *, const void *, size_t) = memcpy;
    void *(*volatile move)(void *, const void *, size_t) = memmove;
    void *(*volatile set)(void *, int, size_t) = memset;
    char *p = get(OWN), *q = do_malloc(2 * bytes);
    copy(q, p, bytes);
    move(q + 8, q, bytes);
    copy(p, q + 8, bytes);
    set(q, 0, 2 * bytes);
    bool right = p[0] == OWN && p[bytes - 1] == OWN;
    do_free(p);
    do_free(q);
    return ok_if(right);
}

/* ---- */

const struct kind kinds_of_calls[] = {
    {"sized_delete_less", sized_delete, ALL, 50, "ended", "delete with half of the size"},
    {"sized_delete_more", sized_delete, ALL, 300, "ended", "delete with thrice the size"},
    {"sized_delete", sized_delete, ALL, 100, "ok", "delete with the size"},
    {"aligned_sized_delete_more", aligned_sized_delete, SMALL | LARGE, 300, "ended",
     "aligned delete with thrice the size"},
    {"aligned_sized_delete", aligned_sized_delete, SMALL | LARGE, 100, "ok",
     "aligned delete with the size"},
    {"free_sized_less", free_with_size, ALL, 50, "ended", "free_sized with half of the size"},
    {"free_sized_more", free_with_size, ALL, 300, "ended", "free_sized with thrice the size"},
    {"free_sized", free_with_size, ALL, 100, "ok", "free_sized with the size"},
    {"free_aligned_sized_more", aligned_free_with_size, SMALL | LARGE, 300, "ended",
     "free_aligned_sized with thrice the size"},
    {"free_aligned_sized", aligned_free_with_size, SMALL | LARGE, 100, "ok",
     "free_aligned_sized with the size"},
    {"malloc_then_delete", other_function, SMALL | LARGE, 0, "ended", "delete of malloc's block"},
    {"new_then_free", other_function, SMALL | LARGE, 1, "ended", "free of new's block"},
    {"new_then_delete_array", other_function, SMALL | LARGE, 2, "ended", "delete[] of new's block"},
    {"usable_size_freed", usable_size, ALL, 0, "ended, null",
     "malloc_usable_size of a block just freed"},
    {"usable_size_freed_long_ago", usable_size, ALL, 1, "ended, null",
     "malloc_usable_size of a block freed long ago"},
    {"usable_size_inside_8", usable_size, ALL, 8, "ended, null",
     "malloc_usable_size 8 bytes into a block"},
    {"usable_size_inside_16", usable_size, ALL, 16, "ended, null",
     "malloc_usable_size 16 bytes into a block"},
    {"usable_size_unused", usable_size, SMALL, 16384, "ended, null",
     "malloc_usable_size 16 KiB past a small block"},
    {"usable_size_static", usable_static, ONE, 0, "ended, null",
     "malloc_usable_size of static memory"},
    {"uninitialized_usable_size", usable_first, ONE, 1, "ended, null",
     "malloc_usable_size of the number 1 as the first call"},
    {"object_size_freed", object_size, SMALL | LARGE, 0, "ended, null",
     "malloc_object_size of a block just freed"},
    {"object_size_freed_long_ago", object_size, SMALL | LARGE, 1, "ended, null",
     "malloc_object_size of a block freed long ago"},
    {"object_size_past", object_size, SMALL, 44, "ended, null",
     "malloc_object_size of an address past the bytes of a small block"},
    {"object_size", object_size_right, SMALL | LARGE, 0, "ok",
     "malloc_object_size of a block and of an address in it"},
    {"object_size_zero", object_size_of_nothing, ONE, 0, "ok",
     "malloc_object_size of a block of malloc(0)"},
    {"impossible_sizes", impossible_sizes, ONE, (long)1 << 62, "ok",
     "malloc and realloc of more than there can be"},
    {"overflowing_products", overflowing_products, ONE, 0, "ok",
     "calloc and reallocarray of n * m bytes that overflow"},
    {"wrong_alignments", wrong_alignments, ONE, 0, "ok",
     "posix_memalign and aligned_alloc of wrong alignments"},
    {"aligned_alloc_zero_size", nothing_aligned, ONE, 0, "ok", "aligned_alloc of no bytes"},
    {"calloc_zeroed", zeroed, ALL, 0, "ok", "calloc after a free"},
    {"pvalloc", whole_pages, ONE, 0, "ok", "pvalloc gives whole pages"},
    {"malloc_zero_different", nothings_differ, ONE, 0, "ok",
     "malloc(0) gives an address of its own each time"},
    {"large_array_growth", growth, ONE, 0, "ok", "realloc up to 64 MiB and down again"},
    {"sizes_apart", sizes_apart, ONE, 0, "ok", "2,000 blocks of 2,000 sizes keep their content"},
    {"realloc_init", first_realloc_of_null, ONE, 0, "ok",
     "realloc as the first call, and in a new thread"},
    {"realloc_0", realloc_to_nothing, ALL, 0, "ok", "realloc(p, 0), and free of the result"},
    {"information", information, ONE, 0, "ok", "mallinfo2 and malloc_info"},
    {"copies_within", copies_within, SMALL | LARGE, 0, "ok",
     "memcpy, memmove and memset of whole blocks"},
    {0},
};

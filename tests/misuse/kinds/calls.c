/* Wrong sizes, and questions about what is no block. */
#include "kinds.h"

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
    return finish(NULL);
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

/* ---- */

const struct kind kinds_of_calls[] = {
    {"sized_delete_less", sized_delete, ALL, 50, "ended", "delete with half of the size"},
    {"sized_delete_more", sized_delete, ALL, 300, "ended", "delete with thrice the size"},
    {"aligned_sized_delete_more", aligned_sized_delete, SMALL | LARGE, 300, "ended",
     "aligned delete with thrice the size"},
    {"free_sized_less", free_with_size, ALL, 50, "ended", "free_sized with half of the size"},
    {"free_sized_more", free_with_size, ALL, 300, "ended", "free_sized with thrice the size"},
    {"free_aligned_sized_more", aligned_free_with_size, SMALL | LARGE, 300, "ended",
     "free_aligned_sized with thrice the size"},
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
    {0},
};

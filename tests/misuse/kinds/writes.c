/* Writes outside of a block, and to a free one. */
#include "kinds.h"

#include <string.h>
#include <unistd.h>

/* ---- beside the block ---- */

static const char *overflow(void)
{
    char *p = get_below();
    size_t usable = do_usable_size(p);
    WRONGLY(change(p + usable, (size_t)number));
    return finish(p);
}

static const char *underflow(void)
{
    char *p = get_above();
    WRONGLY(change(p - number, (size_t)number));
    return finish(p);
}

/* Nothing of another block is there: only the allocator's rounding up. */
static const char *overflow_slack(void)
{
    char *p = get_below();
    if (do_usable_size(p) == bytes)
        return "absent";
    WRONGLY(change(p + bytes, 1));
    return finish(p);
}

static const char *overflow_aligned(void)
{
    char *p = do_aligned_alloc(1 << 16, 1 << 18);
    size_t usable = do_usable_size(p);
    WRONGLY(change(p + usable, (size_t)number));
    return finish(p);
}

static const char *overflow_shrunk(void)
{
    get_among();
    char *p = do_realloc(get(OWN), bytes / 2);
    size_t usable = do_usable_size(p);
    if (usable >= bytes)
        return "absent";
    WRONGLY(change(p + usable, (size_t)number));
    return finish(p);
}

static const char *write_of_no_bytes(void)
{
    char *p = do_malloc(0);
    WRONGLY(change(p, 1));
    return finish(p);
}

/* By the functions of the C library, which an allocator may replace by ones that look. */
static void *(*volatile do_memcpy)(void *, const void *, size_t) = memcpy;
static void *(*volatile do_memmove)(void *, const void *, size_t) = memmove;
static void *(*volatile do_memset)(void *, int, size_t) = memset;
static void *(*volatile do_memccpy)(void *, const void *, int, size_t) = memccpy;

static const char *overflow_by_function(void)
{
    char *p = get_below();
    size_t usable = do_usable_size(p), count = usable + 16;
    char *from = do_calloc(1, count + 1);
    say_before();
    if (number == 0)
        do_memcpy(p, from, count);
    else if (number == 1)
        do_memmove(p, from, count);
    else if (number == 2)
        do_memset(p, 1, count);
    else
        do_memccpy(p, from, 1, count);
    say_after();
    do_free(from);
    return finish(p);
}

/* ---- after free ---- */

static const char *write_after_free(void)
{
    char *p = get_among();
    do_free(p);
    WRONGLY(change(p + (number < 0 ? bytes / 2 : (size_t)number), 8));
    return finish(NULL);
}

/* The write may hit the new owner. */
static const char *write_after_reuse(void)
{
    char *p = get_among();
    do_free(p);
    char *q = get(OTHERS);
    WRONGLY(change(p + bytes / 2, 8));
    bool hit = q == p;
    const char *found = finish(q);
    return hit ? "damaged" : found;
}

static const char *write_after_realloc(void)
{
    char *p = get_among();
    char *q = do_realloc(p, 3 * bytes);
    if (q == p)
        return "absent";
    WRONGLY(change(p + bytes / 2, 8));
    return finish(q);
}

static const char *write_after_realloc_to_nothing(void)
{
    char *p = get_among();
    void *q = do_realloc(p, 0);
    WRONGLY(change(p, 8));
    return finish(q);
}

/* ---- attacks on lists in free blocks ---- */

static char wished[1 << 17] __attribute__((aligned(1 << 16)));

/* number: as glibc stores the address (exclusive or with its own place), or plainly. */
static const char *write_of_list(void)
{
    char *a = get_among(), *b = get(OWN);
    do_free(a);
    do_free(b);
    say_before();
    uintptr_t words[2] = {(uintptr_t)(wished + PAGE), (uintptr_t)(wished + PAGE)};
    if (number == 1)
        words[0] ^= (uintptr_t)b >> 12;
    memcpy(b, words, number == 1 ? sizeof words[0] : sizeof words);
    __asm__ volatile("" ::: "memory");
    say_after();
    return take_many(NULL, wished + PAGE);
}

/* What a second free of the block would be noticed by may be in it. */
static const char *twice_after_write(void)
{
    char *p = get_among(), *q = get(OWN);
    do_free(p);
    if (number == 1)
        do_free(q);
    change(p, 32);
    WRONGLY(do_free(p));
    return take_many(NULL, NULL);
}

/* ---- */

const struct kind kinds_of_writes[] = {
    {"overflow_1", overflow, ALL, 1, "ended", "writes 1 byte past the usable size"},
    {"overflow_8", overflow, ALL, 8, "ended", "writes 8 bytes past the usable size"},
    {"overflow_32", overflow, ALL, 32, "ended", "writes 32 bytes past the usable size"},
    {"overflow_page", overflow, ALL, PAGE, "ended", "writes a page past the usable size"},
    {"overflow_slack", overflow_slack, ALL, 1, "ended",
     "writes 1 byte past the size asked for, in what the allocator rounded up"},
    {"underflow_1", underflow, ALL, 1, "ended", "writes the byte before the block"},
    {"underflow_32", underflow, ALL, 32, "ended", "writes the 32 bytes before the block"},
    {"underflow_page", underflow, ALL, PAGE, "ended", "writes the page before the block"},
    {"overflow_aligned_large", overflow_aligned, ONE, 1, "ended",
     "writes 1 byte past a block of aligned_alloc"},
    {"overflow_realloc_shrink", overflow_shrunk, LARGE | HUGE, 1, "ended",
     "writes 1 byte past a block that realloc made smaller"},
    {"write_zero_size", write_of_no_bytes, ONE, 0, "ended", "writes to a block of malloc(0)"},
    {"memcpy_overflow", overflow_by_function, SMALL | LARGE, 0, "ended",
     "memcpy of 16 bytes too many"},
    {"memmove_overflow", overflow_by_function, SMALL | LARGE, 1, "ended",
     "memmove of 16 bytes too many"},
    {"memset_overflow", overflow_by_function, SMALL | LARGE, 2, "ended",
     "memset of 16 bytes too many"},
    {"memccpy_overflow", overflow_by_function, SMALL | LARGE, 3, "ended",
     "memccpy of 16 bytes too many"},
    {"write_after_free", write_after_free, ALL, -1, "ended",
     "writes 8 bytes in the middle of a free block"},
    {"write_after_free_start", write_after_free, ALL, 0, "ended",
     "writes the first 8 bytes of a free block"},
    {"write_after_free_second", write_after_free, ALL, 8, "ended",
     "writes the second 8 bytes of a free block"},
    {"write_after_free_reuse", write_after_reuse, ALL, 0, "ended",
     "writes to a free block after one malloc of its size"},
    {"write_after_realloc", write_after_realloc, ALL, 0, "ended",
     "writes to a block that realloc has moved"},
    {"write_after_realloc_0", write_after_realloc_to_nothing, ONE, 0, "ended",
     "writes to a block after realloc(p, 0)"},
    {"freelist_write", write_of_list, ALL, 0, "ended, apart",
     "writes an address to a free block, then allocates"},
    {"freelist_write_mangled", write_of_list, FEW_BYTES, 1, "ended, apart",
     "writes an address as glibc encodes it to a free block, then allocates"},
    {"double_free_after_write", twice_after_write, ALL, 0, "ended",
     "frees, writes to the free block, frees again"},
    {"double_free_after_write_1", twice_after_write, ALL, 1, "ended",
     "frees it and another, writes to the free block, frees it again"},
    {0},
};

/* Reads outside of a block, of a free one, and of a new one. */
#include "kinds.h"

#include <string.h>

static const char *read_there(const char *from, size_t count)
{
    WRONGLY(const char *found = look_at(from, count));
    return found;
}

/* ---- beside the block ---- */

static const char *read_past(void)
{
    char *p = get_below();
    const char *found = read_there(p + do_usable_size(p), (size_t)number);
    finish(p);
    return found;
}

static const char *read_before(void)
{
    char *p = get_above();
    const char *found = read_there(p - number, (size_t)number);
    finish(p);
    return found;
}

static const char *read_of_no_bytes(void)
{
    char *p = do_malloc(0);
    const char *found = read_there(p, 1);
    finish(p);
    return found;
}

static const char *read_shrunk(void)
{
    char *p = get_among();
    memset(p, OWN, bytes);
    char *q = do_realloc(p, bytes / 2);
    const char *found = read_there(q + bytes * 3 / 4, PAGE);
    finish(q);
    return found;
}

static void *(*volatile do_memcpy)(void *, const void *, size_t) = memcpy;
static void *(*volatile do_memmove)(void *, const void *, size_t) = memmove;
static void *(*volatile do_memccpy)(void *, const void *, int, size_t) = memccpy;

static const char *read_past_by_function(void)
{
    char *p = get_below();
    size_t count = do_usable_size(p) + 16;
    char *to = do_calloc(1, count + 1);
    say_before();
    if (number == 0)
        do_memcpy(to, p, count);
    else if (number == 1)
        do_memmove(to, p, count);
    else
        do_memccpy(to, p, 0x101, count);
    say_after();
    const char *found = look_at(to + count - 16, 16);
    do_free(to);
    finish(p);
    return found;
}

/* A string without its end: how far a reader gets. */
static const char *string_without_end(void)
{
    size_t (*volatile length)(const char *) = strlen;
    char *p = get_among();
    size_t usable = do_usable_size(p);
    memset(p, OWN, usable);
    WRONGLY(size_t found = length(p));
    finish(p);
    return found == usable ? "zeros" : "other";
}

/* What a string function can read of a word that guards the block's end is not all of it. */
static const char *guard_as_string(void)
{
    char *p = get_among(), all[8], copied[8] = {0};
    const char *end = p + do_usable_size(p);
    say_before();
    for (unsigned i = 0; i < 8; i++)
        all[i] = ((const volatile char *)end)[i];
    say_after();
    strncpy(copied, end, sizeof copied);
    bool whole = memcmp(all, copied, sizeof all) == 0;
    const char *found = look_at(all, sizeof all);
    finish(p);
    return !whole ? "zeros" : found;
}

/* ---- after free ---- */

static const char *read_after_free(void)
{
    char *p = get_among();
    do_free(p);
    const char *found = read_there(p, edge);
    finish(NULL);
    return found;
}

/* By then it is another's, who wrote to it. */
static const char *read_after_reuse(void)
{
    char *p = get_among();
    do_free(p);
    char *q = get(OTHERS);
    const char *found = read_there(p, edge);
    finish(q);
    return found;
}

static const char *read_after_realloc(void)
{
    char *p = get_among();
    char *q = do_realloc(p, 3 * bytes);
    if (q == p)
        return "absent";
    const char *found = read_there(p, edge);
    finish(q);
    return found;
}

static const char *reuse(void)
{
    char *p = get_among(), *others[64] = {NULL};
    size_t most = bytes > 1000000 ? 8 : 64, at = 0;
    do_free(p);
    while (at < most && (others[at] = get(OTHERS)) != p)
        at++;
    return at == 0 ? "reused" : at < most ? "later" : "apart";
}

/* ---- new blocks ---- */

static const char *read_new(void)
{
    char *blocks[64];
    size_t count = bytes > 1000000 ? 4 : 64;
    for (size_t i = 0; i < count; i++)
        blocks[i] = get(OWN);
    for (size_t i = 0; i < count; i++)
        do_free(blocks[i]);
    say_before();
    const char *worst = "zeros";
    for (size_t i = 0; i < count; i++) {
        blocks[i] = do_malloc(bytes);
        const char *found = look_at(blocks[i], edge);
        if (strcmp(found, "old") == 0 || strcmp(worst, "zeros") == 0)
            worst = found;
    }
    say_after();
    for (size_t i = 0; i < count; i++)
        do_free(blocks[i]);
    go_on();
    return worst;
}

static const char *read_grown(void)
{
    char *q = get(OWN);
    memset(q, OWN, bytes);
    do_free(q);
    char *p = do_malloc(bytes / 4);
    memset(p, OTHERS, bytes / 4);
    p = do_realloc(p, bytes);
    const char *found = read_there(p + bytes - edge, edge);
    do_free(p);
    go_on();
    return found;
}

static const char *order(void)
{
    char *blocks[16];
    for (unsigned i = 0; i < 16; i++)
        blocks[i] = get(OWN);
    unsigned up = 0;
    for (unsigned i = 1; i < 16; i++)
        up += blocks[i] > blocks[i - 1];
    return up >= 13 || up <= 2 ? "in-order" : "scattered";
}

/* ---- */

const struct kind kinds_of_reads[] = {
    {"overread_1", read_past, ALL, 1, "ended, zeros", "reads 1 byte past the usable size"},
    {"overread_page", read_past, ALL, PAGE, "ended, zeros", "reads a page past the usable size"},
    {"underread_32", read_before, ALL, 32, "ended, zeros", "reads the 32 bytes before the block"},
    {"read_zero_size", read_of_no_bytes, ONE, 0, "ended", "reads from a block of malloc(0)"},
    {"read_after_realloc_shrink", read_shrunk, LARGE | HUGE, 0, "ended, zeros",
     "reads what realloc cut off"},
    {"memcpy_overread", read_past_by_function, SMALL | LARGE, 0, "ended",
     "memcpy from a block, 16 bytes too many"},
    {"memmove_overread", read_past_by_function, SMALL | LARGE, 1, "ended",
     "memmove from a block, 16 bytes too many"},
    {"memccpy_overread", read_past_by_function, SMALL | LARGE, 2, "ended",
     "memccpy from a block, 16 bytes too many"},
    {"string_overflow", string_without_end, ONE, 0, "zeros",
     "strlen of a block without a zero; 'zeros' is that it ended with the block"},
    {"guard_leak", guard_as_string, ONE, 0, "ended, zeros",
     "strncpy of what follows a block; 'zeros' is that it gets only a part"},
    {"read_after_free", read_after_free, ALL, 0, "ended, zeros", "reads a free block"},
    {"read_after_free_reuse", read_after_reuse, ALL, 0, "ended, zeros",
     "reads a free block after one malloc of its size"},
    {"read_after_realloc", read_after_realloc, ALL, 0, "ended, zeros",
     "reads a block that realloc has moved"},
    {"reuse", reuse, ALL, 0, "later, apart", "frees a block and allocates others of its size"},
    {"uninitialized_read", read_new, ALL, 0, "zeros", "reads new blocks where others were freed"},
    {"uninitialized_read_realloc", read_grown, ALL, 0, "zeros",
     "reads what realloc added to a block"},
    {"order", order, FEW_BYTES, 0, "scattered", "compares the addresses of 16 new blocks"},
    {0},
};

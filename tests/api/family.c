/* Functions of the C library that hand out memory for free: all of it must come from the malloc
 * that free belongs to (trap 28). */
#include "check.h"

#include <stdio.h>
#include <unistd.h>
#include <wchar.h>

extern void *valloc(size_t), *pvalloc(size_t);
static void *(*volatile do_valloc)(size_t) = valloc;
static void *(*volatile do_pvalloc)(size_t) = pvalloc;
static void *(*volatile do_reallocarray)(void *, size_t, size_t) = reallocarray;

static void good_block(const char *what, void *p, size_t align, size_t n)
{
    NEED(what, p);
    CHECK_ALIGNED(p, align);
    size_t usable = do_usable_size(p);
    if (!CHECK(usable >= n && usable <= 2 * n + 65536,
               "usable size of %s(%zu): expected that, found "
               "%zu: is it from another malloc?",
               what, n, usable))
        return; /* not to be freed then */
    pattern_fill(p, n, 1);
    p = NEED("realloc", do_realloc(p, n + 1000));
    CHECK_PATTERN(p, n, 1);
    do_free(p);
}

static void page_aligned_functions(void)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    for (size_t n = 1; n < 3 * MiB; n = n * 5 + 3) {
        good_block("valloc", do_valloc(n), page, n);
        good_block("pvalloc", do_pvalloc(n), page, (n + page - 1) / page * page);
    }
}

static void reallocarray_is_realloc(void)
{
    good_block("reallocarray", do_reallocarray(NULL, 10, 30), 16, 300);
}

static void strings(void)
{
    char *text = NULL;
    good_block("strdup", strdup("some text"), 16, 10);
    good_block("strndup", strndup("some text", 4), 16, 5);
    good_block("wcsdup", wcsdup(L"some text"), 16, 40);
    CHECK_SIZE("asprintf", (size_t)asprintf(&text, "%d %s", 12345, "and more"), 14);
    good_block("asprintf", text, 16, 15);
    good_block("getcwd", getcwd(NULL, 0), 16, 2);
    good_block("realpath", realpath("/", NULL), 16, 2);
}

static void streams(void)
{
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    if (!CHECK(stream != NULL, "open_memstream: %s", error_name(errno)))
        return;
    for (int i = 0; i < 50000; i++)
        fprintf(stream, "%d,", i);
    fclose(stream);
    good_block("open_memstream", text, 16, size);

    text = NULL;
    size = 0;
    stream = fopen("/proc/self/maps", "r");
    if (!CHECK(stream != NULL, "/proc/self/maps: %s", error_name(errno)))
        return;
    while (getline(&text, &size, stream) > 0)
        ;
    fclose(stream);
    good_block("getline", text, 16, size);
}

int main(void)
{
    check_start("family");
    RUN(reallocarray_is_realloc);
    RUN(strings);
    RUN(streams);
    RUN(page_aligned_functions);
    return check_end();
}

/* Functions of the C library that return memory to be freed: all of it must come from the malloc to
 * which free belongs (trap 28). */
#include "check.h"

#include <stdio.h>
#include <unistd.h>
#include <wchar.h>

extern void *valloc(size_t), *pvalloc(size_t);
static void *(*volatile do_valloc)(size_t) = valloc;
static void *(*volatile do_pvalloc)(size_t) = pvalloc;

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

TEST(page_aligned_functions)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    for (size_t n = 1; n < 3 * MiB; n = n * 5 + 3) {
        good_block("valloc", do_valloc(n), page, n);
        good_block("pvalloc", do_pvalloc(n), page, (n + page - 1) / page * page);
    }
}

/* What glibc 2.36 exports beside the names of the standards. */
extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t),
    *__libc_memalign(size_t, size_t), *__libc_valloc(size_t), *__libc_pvalloc(size_t);
extern void __libc_free(void *), cfree(void *);
extern int __posix_memalign(void **, size_t, size_t);

TEST(other_names)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    good_block("__libc_malloc", __libc_malloc(1000), 16, 1000);
    good_block("__libc_calloc", __libc_calloc(10, 100), 16, 1000);
    good_block("__libc_realloc", __libc_realloc(NULL, 1000), 16, 1000);
    good_block("__libc_memalign", __libc_memalign(512, 1000), 512, 1000);
    good_block("__libc_valloc", __libc_valloc(1000), page, 1000);
    good_block("__libc_pvalloc", __libc_pvalloc(1000), page, page);
    void *p = NULL;
    CHECK_ERROR("__posix_memalign", __posix_memalign(&p, 128, 1000), 0);
    good_block("__posix_memalign", p, 128, 1000);
    for (int i = 0; i < 100000; i++) { /* they free, or there is soon no memory */
        __libc_free(NEED("malloc", do_malloc(100000)));
        cfree(NEED("malloc", do_malloc(100000)));
    }
}

/* C23: the size is a hint, and a wrong one frees the same block. */
extern void free_sized(void *, size_t), free_aligned_sized(void *, size_t, size_t);

TEST(sized_frees)
{
    for (size_t n = 1; n < 5 * MiB; n = n * 3 + 1)
        for (int i = 0; i < 50; i++) {
            void *small = NEED("malloc", do_malloc(n));
            void *aligned = NEED("aligned_alloc", do_aligned_alloc(64, n));
            errno = 4321;
            free_sized(small, i % 2 == 0 ? n : 1);
            free_aligned_sized(aligned, 64, i % 2 == 0 ? n : n + 100);
            CHECK_ERROR("errno after them", errno, 4321);
        }
    free_sized(NULL, 10);
    free_aligned_sized(NULL, 64, 10);
    CHECK_ERROR("errno after null", errno, 4321);
}

TEST(strings)
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

TEST(streams)
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

int main(void) { return tests_main("family"); }

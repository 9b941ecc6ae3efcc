/* Prints what each of many calls returns and leaves in errno, one a line, for test_beside_glibc.py
 * to compare with glibc's malloc, and at last malloc_stats. Left out is what docs/contract.md names
 * as different: alignments of aligned_alloc that are no power of two, which glibc refuses
 * since 2.38, and whether mallopt takes a value. */
#define _GNU_SOURCE
#include <errno.h>
#include <malloc.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define MARK 4321
#define COUNT(array) (sizeof(array) / sizeof *(array))

static const size_t sizes[] = {0,
                               1,
                               24,
                               100,
                               1024,
                               5000,
                               70000,
                               1 << 20,
                               5 << 20,
                               PTRDIFF_MAX - (64 << 10),
                               PTRDIFF_MAX,
                               (size_t)PTRDIFF_MAX + 1,
                               SIZE_MAX - 100,
                               SIZE_MAX};

static const char *name_of(int error)
{
    static char other[20];
    snprintf(other, sizeof other, "%d", error);
    return error == 0        ? "0"
           : error == EINVAL ? "EINVAL"
           : error == ENOMEM ? "ENOMEM"
           : error == MARK   ? "as before"
                             : other;
}

/* After a call; what was in errno is printed first, since free may come next. */
static void block(const char *call, size_t first, size_t second, void *p)
{
    const char *error = name_of(errno);
    printf("%s(%#zx, %#zx): %s, errno %s", call, first, second, p != NULL ? "block" : "null",
           error);
    errno = MARK;
    free(p);
    printf("; free: errno %s\n", name_of(errno));
    errno = MARK;
}

static void value(const char *call, long long first, long long second, long long result)
{
    printf("%s(%lld, %lld): %lld, errno %s\n", call, first, second, result, name_of(errno));
    errno = MARK;
}

static void aligned(size_t align)
{
    static char untouched;
    for (size_t i = 0; i < COUNT(sizes); i++) {
        void *p = &untouched;
        int error = posix_memalign(&p, align, sizes[i]);
        printf("posix_memalign: %s, %s; ", name_of(error),
               p == &untouched ? "untouched" : "stored");
        block("posix_memalign", align, sizes[i], p != &untouched ? p : NULL);
        block("memalign", align, sizes[i], memalign(align, sizes[i]));
        if (align != 0 && (align & (align - 1)) == 0)
            block("aligned_alloc", align, sizes[i], aligned_alloc(align, sizes[i]));
    }
}

static void resized(size_t first, size_t n)
{
    void *p = malloc(first);
    errno = MARK;
    void *q = realloc(p, n);
    block("realloc", first, n, q);
    if (q == NULL && n != 0)
        free(p);
    p = malloc(first);
    errno = MARK;
    q = reallocarray(p, 3, n);
    block("reallocarray", first, n, q);
    if (q == NULL && n != 0)
        free(p);
}

static void unaligned(size_t n)
{
    block("malloc", n, 0, malloc(n));
    block("calloc", 1, n, calloc(1, n));
    block("calloc", n, 2, calloc(n, 2));
    block("calloc", 0, n, calloc(0, n));
    block("calloc", n, n, calloc(n, n));
    block("valloc", n, 0, valloc(n));
    block("pvalloc", n, 0, pvalloc(n));
    block("realloc of null", 0, n, realloc(NULL, n));
    block("reallocarray of null", 2, n, reallocarray(NULL, 2, n));
    block("reallocarray of null", n, 0, reallocarray(NULL, n, 0));
    for (size_t i = 0; i < COUNT(sizes) && sizes[i] < PTRDIFF_MAX / 2; i++)
        resized(sizes[i], n);
}

static void numbers(FILE *stream)
{
    value("malloc_usable_size of null", 0, 0, (long long)malloc_usable_size(NULL));
    free(NULL);
    value("free of null", 0, 0, 0);
    static const size_t pads[] = {0, 4096, SIZE_MAX};
    for (size_t i = 0; i < COUNT(pads); i++) {
        int trimmed = malloc_trim(pads[i]); /* whether there was something is another matter */
        value("malloc_trim", (long long)pads[i], 0, trimmed == 0 || trimmed == 1);
    }
    static const int options[] = {0, 1, -1, 2, INT32_MAX};
    for (size_t i = 0; i < COUNT(options); i++)
        value("malloc_info", options[i], 0, malloc_info(options[i], stream));
    (void)mallinfo2();
    value("mallinfo2", 0, 0, 0);
    static const int values[] = {INT32_MIN, -1, 0, 1, 65536, INT32_MAX};
    for (int parameter = -10; parameter <= 2; parameter++)
        for (size_t i = 0; i < COUNT(values); i++) {
            mallopt(parameter, values[i]);
            value("mallopt", parameter, values[i], 0);
        }
}

int main(void)
{
    static const size_t alignments[] = {0,
                                        1,
                                        2,
                                        3,
                                        4,
                                        7,
                                        8,
                                        12,
                                        16,
                                        24,
                                        48,
                                        64,
                                        4096,
                                        4097,
                                        1 << 20,
                                        SIZE_MAX / 4 + 1,
                                        SIZE_MAX / 2 + 1,
                                        SIZE_MAX};
    FILE *nowhere = fopen("/dev/null", "w");
    if (nowhere == NULL)
        return 1;
    errno = MARK;
    for (size_t i = 0; i < COUNT(alignments); i++)
        aligned(alignments[i]);
    for (size_t i = 0; i < COUNT(sizes); i++)
        unaligned(sizes[i]);
    numbers(nowhere);
    malloc_stats();
    return 0;
}

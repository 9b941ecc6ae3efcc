/* Calls with a name (hakmem_malloc_at and its relatives, Clang's allocation tokens) serve as those
 * without one, and a heap profile has their names. The test sets HAKMEM_PROFILE_RATE to 4 KiB. */
#include "check.h"

#include <hakmem/hakmem.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef STRESS_HAKMEM_NAMES
#define HAS_TOKENS 1
void *__alloc_token_malloc(size_t, size_t);
void *__alloc_token_calloc(size_t, size_t, size_t);
void *__alloc_token_realloc(void *, size_t, size_t);
void *__alloc_token_reallocarray(void *, size_t, size_t, size_t);
void *__alloc_token_aligned_alloc(size_t, size_t, size_t);
void *__alloc_token_memalign(size_t, size_t, size_t);
void *__alloc_token_valloc(size_t, size_t);
void *__alloc_token_pvalloc(size_t, size_t);
int __alloc_token_posix_memalign(void **, size_t, size_t, size_t);
#endif

#define TOO_MUCH ((size_t)PTRDIFF_MAX + 1)

static const size_t sizes[] = {0, 1, 16, 100, 1024, 1025, 32768, 32769, 300000, 5000000};

/* ---- all forms, whatever names the call ---- */

struct forms {
    const char *name;
    void *(*malloc)(size_t);
    void *(*calloc)(size_t, size_t);
    void *(*realloc)(void *, size_t);
    void *(*aligned_alloc)(size_t, size_t);
};

static const char *site = "the site";
static void *at_malloc(size_t n) { return hakmem_malloc_at(n, site); }
static void *at_calloc(size_t count, size_t n) { return hakmem_calloc_at(count, n, site); }
static void *at_realloc(void *p, size_t n) { return hakmem_realloc_at(p, n, site); }
static void *at_aligned(size_t align, size_t n) { return hakmem_aligned_alloc_at(align, n, site); }

#ifdef HAS_TOKENS
static void *token_malloc(size_t n) { return __alloc_token_malloc(n, 17); }
static void *token_calloc(size_t count, size_t n) { return __alloc_token_calloc(count, n, 17); }
static void *token_realloc(void *p, size_t n) { return __alloc_token_realloc(p, n, 17); }
static void *token_array(void *p, size_t n) { return __alloc_token_reallocarray(p, 1, n, 17); }
static void *token_aligned(size_t align, size_t n)
{
    return __alloc_token_aligned_alloc(align, n, 17);
}
static void *token_memalign(size_t align, size_t n) { return __alloc_token_memalign(align, n, 17); }
#endif

static const struct forms all[] = {
    {"at", at_malloc, at_calloc, at_realloc, at_aligned},
#ifdef HAS_TOKENS
    {"token", token_malloc, token_calloc, token_realloc, token_aligned},
    {"token, others", token_malloc, token_calloc, token_array, token_memalign},
#endif
};

static void good_block(void *p, size_t n, unsigned number)
{
    NEED("a block", p);
    CHECK_ALIGNED(p, 16);
    size_t usable = do_usable_size(p);
    CHECK(usable >= n, "usable bytes of %zu: found %zu", n, usable);
    pattern_fill(p, n, number);
    CHECK_PATTERN(p, n, number);
}

static void serves(const struct forms *form)
{
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        size_t n = sizes[i];
        void *p = form->malloc(n);
        void *q = form->malloc(n);
        good_block(p, n, 1);
        good_block(q, n, 2);
        CHECK(p != q, "two blocks of %zu: expected two addresses", n);
        CHECK_PATTERN(p, n, 1);
        p = NEED(form->name, form->realloc(p, n + 1));
        CHECK_PATTERN(p, n, 1);
        p = NEED(form->name, form->realloc(p, 3 * n + 100));
        CHECK_PATTERN(p, n, 1);
        p = NEED(form->name, form->realloc(p, n / 3 + 1));
        CHECK_PATTERN(p, n / 3, 1);
        do_free(p);
        do_free(q);
        p = NEED(form->name, form->calloc(n, 3));
        CHECK_BYTES(p, 0, 3 * n);
        memset(p, 0xa5, 3 * n);
        do_free(p);
        p = NEED(form->name, form->calloc(n, 3)); /* the same memory again, probably */
        CHECK_BYTES(p, 0, 3 * n);
        do_free(p);
        for (size_t align = 1; align <= MiB; align *= 4) {
            p = NEED(form->name, form->aligned_alloc(align, n));
            CHECK_ALIGNED(p, align < 16 ? 16 : align);
            good_block(p, n, 3);
            do_free(p);
        }
    }
    void *p = NEED(form->name, form->realloc(NULL, 100));
    good_block(p, 100, 4);
    errno = 4321;
    CHECK_NULL("realloc to 0", form->realloc(p, 0));
    CHECK_ERROR("errno of realloc to 0", errno, 4321);
}

static void refuses(const struct forms *form)
{
    void *p = NEED("malloc", do_malloc(100));
    pattern_fill(p, 100, 5);
    errno = 0;
    CHECK_NULL(form->name, form->malloc(TOO_MUCH));
    CHECK_ERROR("malloc", errno, ENOMEM);
    errno = 0;
    CHECK_NULL(form->name, form->calloc(SIZE_MAX / 2, 3));
    CHECK_ERROR("calloc", errno, ENOMEM);
    errno = 0;
    CHECK_NULL(form->name, form->calloc(TOO_MUCH, 1));
    CHECK_ERROR("calloc", errno, ENOMEM);
    errno = 0;
    CHECK_NULL(form->name, form->realloc(p, TOO_MUCH));
    CHECK_ERROR("realloc", errno, ENOMEM);
    errno = 0;
    CHECK_NULL(form->name, form->aligned_alloc(64, TOO_MUCH));
    CHECK_ERROR("aligned_alloc", errno, ENOMEM);
    errno = 0;
    CHECK_NULL(form->name, form->aligned_alloc(TOO_MUCH, 1));
    CHECK_ERROR("aligned_alloc", errno, ENOMEM);
    CHECK_PATTERN(p, 100, 5);
    do_free(p);
}

TEST(each_form_serves)
{
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        serves(&all[i]);
}

TEST(each_form_refuses)
{
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        refuses(&all[i]);
    errno = 0;
    CHECK_NULL("an alignment of 3", hakmem_aligned_alloc_at(3, 100, site));
    CHECK_ERROR("an alignment of 3", errno, EINVAL);
}

TEST(it_serves_while_a_profile_is_on)
{
    CHECK_ERROR("start", hakmem_profile_start(), 0);
    each_form_serves();
    each_form_refuses();
    CHECK_ERROR("stop", hakmem_profile_stop(), 0);
    CHECK_SIZE("hakmem_check", (size_t)hakmem_check(), 0);
}

TEST(rare_token_forms)
{
#ifdef HAS_TOKENS
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    void *(*const of_page[])(size_t, size_t) = {__alloc_token_valloc, __alloc_token_pvalloc};
    for (size_t i = 0; i < 2; i++) {
        void *p = of_page[i](100, 5);
        good_block(p, 100, 6);
        CHECK_ALIGNED(p, page);
        do_free(p);
    }
    {
        void *p = &p;
        errno = 4321;
        CHECK_ERROR("posix_memalign", __alloc_token_posix_memalign(&p, 256, 100, 5), 0);
        good_block(p, 100, 7);
        CHECK_ALIGNED(p, 256);
        do_free(p);
        void *same = &same;
        CHECK_ERROR("posix_memalign to 3", __alloc_token_posix_memalign(&same, 3, 1, 5), EINVAL);
        CHECK_ERROR("errno of posix_memalign to 3", errno, 4321);
        CHECK_ERROR("posix_memalign of too much",
                    __alloc_token_posix_memalign(&same, 64, TOO_MUCH, 5), ENOMEM);
        CHECK(same == &same, "posix_memalign changed the pointer on an error");
        CHECK_ERROR("errno of posix_memalign", errno, ENOMEM);
    }
    errno = 0;
    CHECK_NULL("reallocarray", __alloc_token_reallocarray(NULL, SIZE_MAX / 2, 3, 5));
    CHECK_ERROR("reallocarray", errno, ENOMEM);
    do_free(NEED("reallocarray", __alloc_token_reallocarray(NULL, 3, 7, 5)));
#endif
}

/* ---- in a profile ---- */

static char text[8 * MiB];

static void write_profile(void)
{
    int file = memfd_create("profile", 0);
    CHECK_ERROR("hakmem_profile_write", hakmem_profile_write(file), 0);
    ssize_t length = pread(file, text, sizeof text - 1, 0);
    close(file);
    text[length > 0 ? length : 0] = 0;
}

/* Bytes in use of all sites of the name, and bytes allocated. */
static double named(const char *name, double *allocated)
{
    char line[300];
    double sum = 0;
    snprintf(line, sizeof line, "\n# name %s\n", name);
    *allocated = 0;
    for (const char *at = text; (at = strstr(at, line)) != NULL; at++) {
        const char *head = at;
        for (unsigned lines = 0; lines < 2; lines += head[-1] == '\n')
            head--;
        double blocks, bytes, total_blocks, total;
        CHECK(sscanf(head, "%lf: %lf [%lf: %lf]", &blocks, &bytes, &total_blocks, &total) == 4,
              "the site of a name: found '%.60s'", head);
        sum += bytes;
        *allocated += total;
    }
    return sum;
}

#define BLOCKS 4000
#define BYTES 1000

static void expect_named(const char *name, bool in_use)
{
    double allocated;
    double live = named(name, &allocated);
    double planted = (double)BLOCKS * BYTES;
    /* About 870 samples: the standard error is 3%. */
    CHECK(allocated > 0.8 * planted && allocated < 1.2 * planted,
          "bytes allocated under '%s': expected %.0f, found %.0f", name, planted, allocated);
    CHECK(live == (in_use ? allocated : 0), "bytes in use under '%s': found %.0f of %.0f", name,
          live, allocated);
}

static void *blocks[BLOCKS];

static void free_all(void)
{
    for (size_t i = 0; i < BLOCKS; i++)
        do_free(blocks[i]);
}

TEST(a_profile_has_the_names)
{
    hakmem_profile_start();
    for (size_t i = 0; i < BLOCKS; i++)
        blocks[i] = hakmem_malloc_at(BYTES, "cache: lines of the index");
    write_profile();
    expect_named("cache: lines of the index", true);
    free_all();
    for (size_t i = 0; i < BLOCKS; i++)
        blocks[i] = hakmem_calloc_at(1, BYTES, "by calloc");
    free_all();
    for (size_t i = 0; i < BLOCKS; i++)
        blocks[i] = hakmem_realloc_at(NULL, BYTES, "by realloc");
    free_all();
    for (size_t i = 0; i < BLOCKS; i++)
        blocks[i] = hakmem_aligned_alloc_at(8, BYTES, "by aligned_alloc");
    free_all();
    write_profile();
    expect_named("cache: lines of the index", false);
    expect_named("by calloc", false);
    expect_named("by realloc", false);
    expect_named("by aligned_alloc", false);
#ifdef HAS_TOKENS
    for (size_t i = 0; i < BLOCKS; i++)
        blocks[i] = __alloc_token_malloc(BYTES, SIZE_MAX);
    free_all();
    for (size_t i = 0; i < BLOCKS; i++)
        blocks[i] = __alloc_token_calloc(1, BYTES, 3);
    free_all();
    for (size_t i = 0; i < BLOCKS; i++)
        blocks[i] = __alloc_token_memalign(16, BYTES, 4711);
    free_all();
    write_profile();
    expect_named("token 18446744073709551615", false);
    expect_named("token 3", false);
    expect_named("token 4711", false);
#endif
    hakmem_profile_stop();
}

/* Of the call that moves a block, and of blocks of every size. */
TEST(names_of_all_sizes)
{
    static const size_t large[] = {5000, 40000, 300000, 5000000};
    hakmem_profile_start();
    for (size_t i = 0; i < sizeof large / sizeof *large; i++) {
        char name[40];
        double allocated;
        snprintf(name, sizeof name, "of %zu", large[i]);
        for (size_t k = 0; k < 50; k++)
            do_free(NEED("malloc", hakmem_malloc_at(large[i], name)));
        write_profile();
        named(name, &allocated);
        CHECK(allocated > 0, "bytes under '%s': found none", name);
    }
    void *p = NEED("malloc", hakmem_malloc_at(3000000, "before"));
    p = NEED("realloc", hakmem_realloc_at(p, 8000000, "grown"));
    double allocated;
    write_profile();
    CHECK(named("before", &allocated) == 0, "a block that has moved is in use under its old name");
    CHECK(named("grown", &allocated) == 8000000, "a block that has grown: found %.0f", allocated);
    do_free(p);
    hakmem_profile_stop();
}

TEST(foreign_names)
{
    static char long_name[1000];
    char expected[201];
    double allocated;
    memset(long_name, 'x', sizeof long_name - 1);
    memset(expected, 'x', 200);
    expected[200] = 0;
    hakmem_profile_start();
    do_free(NEED("malloc", hakmem_malloc_at(9 * MiB, long_name)));
    do_free(NEED("malloc", hakmem_malloc_at(9 * MiB, "two\nlines\tand \033[1m")));
    do_free(NEED("malloc", hakmem_malloc_at(9 * MiB, "")));
    do_free(NEED("malloc", hakmem_malloc_at(9 * MiB, NULL)));
    char changes[] = "first";
    do_free(NEED("malloc", hakmem_malloc_at(9 * MiB, changes)));
    memcpy(changes, "other", 5);
    do_free(NEED("malloc", hakmem_malloc_at(10 * MiB, changes)));
    do_free(NEED("malloc", do_malloc(9 * MiB)));
    write_profile();
    named(expected, &allocated);
    CHECK(allocated == 9 * MiB, "a long name: expected 9 MiB, found %.0f", allocated);
    named("two?lines?and ?[1m", &allocated);
    CHECK(allocated == 9 * MiB, "a name of two lines: expected 9 MiB, found %.0f", allocated);
    named("first", &allocated);
    CHECK(allocated == 9 * MiB, "a name that changes: expected 9 MiB, found %.0f", allocated);
    named("other", &allocated);
    CHECK(allocated == 10 * MiB, "a name that changes: expected 10 MiB, found %.0f", allocated);
    CHECK(strstr(text, "# name \n") == NULL, "an empty name is in the profile");
    hakmem_profile_stop();
}

static void *allocates(void *name)
{
    for (size_t i = 0; i < BLOCKS; i++)
        do_free(NEED("malloc", hakmem_malloc_at(BYTES, name)));
    return NULL;
}

/* The name is that of the thread's own call. */
TEST(threads_have_their_own)
{
    pthread_t threads[4];
    static char names[4][10];
    hakmem_profile_start();
    for (unsigned i = 0; i < 4; i++) {
        snprintf(names[i], sizeof names[i], "thread %u", i);
        threads[i] = started(allocates, names[i]);
    }
    threads_join(threads, 4);
    write_profile();
    for (unsigned i = 0; i < 4; i++)
        expect_named(names[i], false);
    hakmem_profile_stop();
}

TEST(rare_token_forms_after_a_profile) { rare_token_forms(); }

int main(void) { return tests_main("sites"); }

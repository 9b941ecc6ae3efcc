/* free does not change errno, even if a system call fails meanwhile, and neither does any
 * successful call (traps 19, 20). */
#include "check.h"

#include <sys/mman.h>
#include <unistd.h>

#define MARK 4321

static const size_t sizes[] = {0,       1,       16,       64,      1000,   8000,
                               32768,   32769,   70000,    262144,  524288, 2097152,
                               2097153, 5000000, 20000000, 80000000};
#define SIZES (sizeof sizes / sizeof *sizes)

static void kept(const char *what, size_t n)
{
    CHECK(errno == MARK, "errno after %s, n = %zu: expected %d as before, found %d (%s)", what, n,
          MARK, errno, error_name(errno));
    errno = MARK;
}

TEST(success_keeps_errno)
{
    errno = MARK;
    for (unsigned round = 0; round < 20; round++) {
        for (size_t i = 0; i < SIZES; i++) {
            size_t n = sizes[i];
            void *p = do_malloc(n);
            kept("malloc(n)", n);
            void *q = do_calloc(1, n);
            kept("calloc(1, n)", n);
            p = do_realloc(p, n + n / 2 + 1);
            kept("realloc to more than n", n);
            p = do_realloc(p, n / 2 + 1);
            kept("realloc to half of n", n);
            void *a = do_aligned_alloc(4096, n), *b = NULL;
            kept("aligned_alloc(4096, n)", n);
            int error = do_posix_memalign(&b, 65536, n);
            kept("posix_memalign(65536, n)", n);
            if (!CHECK(p != NULL && q != NULL && a != NULL && error == 0 && b != NULL,
                       "n = %zu: expected blocks, found %p %p %p %p", n, p, q, a, b))
                return;
            do_usable_size(p);
            kept("malloc_usable_size", n);
            do_free(p);
            kept("free", n);
            do_free(q);
            kept("free", n);
            do_free(a);
            kept("free", n);
            do_free(b);
            kept("free", n);
        }
    }
}

TEST(bursts_keep_errno)
{
    enum { N = 30000 };
    static void *blocks[N];
    for (size_t n = 16; n <= 40000; n *= 5) {
        unsigned count = n > 1000 ? N / 20 : N;
        errno = MARK;
        for (unsigned i = 0; i < count; i++)
            if ((blocks[i] = do_malloc(n)) == NULL || errno != MARK) {
                kept("malloc in a burst", n);
                return;
            }
        for (unsigned i = 0; i < count; i++) {
            do_free(blocks[i]);
            if (errno != MARK) {
                kept("free in a burst", n);
                return;
            }
        }
        kept("a burst", n);
    }
}

static void *first_call(void *what)
{
    errno = MARK;
    if (what == NULL)
        what = do_malloc(100);
    kept("a thread's first malloc", 100);
    do_free(what);
    kept("a thread's first free", 100);
    return NULL;
}

TEST(first_calls_of_threads_keep_errno)
{
    for (int i = 0; i < 40; i++)
        in_thread(first_call, i % 2 == 0 ? NULL : NEED("malloc", do_malloc(100)));
}

TEST(errors_of_arguments)
{
    errno = MARK;
    void *p = do_malloc(SIZE_MAX / 2 + 2);
    CHECK_NULL("malloc of too much", p);
    CHECK_ERROR("errno", errno, ENOMEM);
    errno = MARK;
    p = do_malloc(10);
    kept("malloc after a failure", 10);
    do_free(p);
    kept("free after a failure", 10);
}

/* With every mapping that the kernel grants in use, neither giving memory back nor taking it can
 * split one more (trap 48): free must still return, errno be kept, and the heap go on. */
TEST(free_at_the_limit_of_mappings)
{
    if (CHECK_UNDER_THREAD_SANITIZER)
        return; /* which needs mappings itself */
    enum { BLOCKS = 12, MOST = 1 << 20 };
    static const size_t some[BLOCKS] = {64 * MiB, 64 * MiB, 8 * MiB, 8 * MiB, 3 * MiB, 3 * MiB,
                                        MiB,      MiB,      300000,  300000,  40000,   40000};
    void *blocks[BLOCKS];
    for (int i = 0; i < BLOCKS; i++) {
        blocks[i] = NEED("malloc", do_malloc(some[i]));
        memset(blocks[i], 1, some[i]);
    }
    /* Pages of changing protection in one mapping: each is one more for the kernel's count. */
    size_t used = 0, page = (size_t)sysconf(_SC_PAGESIZE);
    unsigned char *strip =
        mmap(NULL, MOST * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (!CHECK(strip != MAP_FAILED, "mmap of the test: %s", error_name(errno)))
        return;
    while (used < MOST && mprotect(strip + used * page, page, PROT_READ) == 0)
        used += 2;
    bool at_limit = used < MOST;
    errno = MARK;
    for (int i = 0; i < BLOCKS; i++) {
        do_free(blocks[i]);
        kept("free at the limit of mappings", some[i]);
    }
    unsigned served = 0;
    for (int i = 0; i < BLOCKS; i++) {
        errno = MARK;
        blocks[i] = do_malloc(some[i]);
        if (blocks[i] == NULL) {
            CHECK_ERROR("errno of malloc that failed at the limit of mappings", errno, ENOMEM);
            continue;
        }
        kept("malloc at the limit of mappings", some[i]);
        memset(blocks[i], 2, some[i]);
        served++;
    }
    errno = MARK;
    for (int i = 0; i < BLOCKS; i++) {
        if (blocks[i] != NULL)
            CHECK_BYTES(blocks[i], 2, some[i]);
        do_free(blocks[i]);
        kept("free at the limit of mappings", some[i]);
    }
    munmap(strip, MOST * page);
    CHECK(!at_limit || served >= 2,
          "at the limit of mappings: expected that what was freed serves again, found %u of %d "
          "blocks",
          served, BLOCKS);
    for (int i = 0; i < BLOCKS; i++)
        do_free(NEED("malloc after the limit of mappings", do_malloc(some[i])));
}

int main(void) { return tests_main("errno"); }

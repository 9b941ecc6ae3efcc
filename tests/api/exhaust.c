/* A limited address space (RLIMIT_AS, trap 47): at its end malloc fails with ENOMEM, blocks stay
 * intact, and freed memory can be allocated again, for equal and for other sizes. Each case runs in
 * a separate process. */
#include "../stress/statm.h"
#include "check.h"

#include <sys/resource.h>

#define ROOM (96 * MiB)

/* Blocks are kept in a list through themselves: the test needs no memory of its own. */
struct link {
    struct link *next;
    size_t size;
};

static bool limit_address_space(void)
{
    struct rlimit limit;
    getrlimit(RLIMIT_AS, &limit);
    limit.rlim_cur = statm_read().mapped + ROOM;
    return CHECK(setrlimit(RLIMIT_AS, &limit) == 0, "setrlimit: %s", error_name(errno));
}

/* Allocates until there is nothing left; the bytes that it got. */
static size_t take_all(struct link **list, size_t n)
{
    size_t bytes = 0;
    for (;;) {
        errno = 4321;
        struct link *block = do_malloc(n);
        if (block == NULL) {
            CHECK_ERROR("errno at the end of memory", errno, ENOMEM);
            return bytes;
        }
        if (!CHECK(bytes <= 2 * ROOM, "malloc(%zu): expected an end at about %zu bytes, found none",
                   n, ROOM))
            return bytes;
        if (errno != 4321)
            CHECK_ERROR("errno after a malloc that succeeded", errno, 4321);
        memset(block, 0x77, n < 4096 ? n : 4096);
        block->next = *list;
        block->size = n;
        *list = block;
        bytes += n;
    }
}

static void give_all(struct link **list)
{
    while (*list != NULL) {
        struct link *block = *list;
        size_t touched = block->size < 4096 ? block->size : 4096;
        CHECK_BYTES(block + 1, 0x77, touched - sizeof *block);
        *list = block->next;
        do_free(block);
    }
}

static const size_t sizes[] = {32, 64, 1000, 8000, 32768, 100000, 1000000, 3000000, 20000000};
#define SIZES (sizeof sizes / sizeof *sizes)

static void one_size_then_others(void *number)
{
    size_t first = (size_t)number;
    struct link *list = NULL;
    if (!limit_address_space())
        return;
    size_t bytes = take_all(&list, first);
    CHECK(bytes >= ROOM / 4, "malloc(%zu) in %zu bytes: expected at least a quarter, found %zu",
          first, ROOM, bytes);
    give_all(&list);
    size_t again = take_all(&list, first);
    CHECK(again >= bytes / 10 * 9,
          "malloc(%zu) after all was freed: expected about %zu bytes as before, found %zu", first,
          bytes, again);
    give_all(&list);
    for (size_t i = 0; i < SIZES; i++) {
        bytes = take_all(&list, sizes[i]);
        CHECK(bytes >= ROOM / 4,
              "malloc(%zu) after blocks of %zu were freed: expected at least %zu bytes, found %zu",
              sizes[i], first, ROOM / 4, bytes);
        give_all(&list);
    }
}

/* Half of the blocks freed, in turn: small requests must be served from the holes. */
static void holes_serve(void *number)
{
    size_t n = (size_t)number;
    struct link *list = NULL, *kept = NULL;
    if (!limit_address_space())
        return;
    size_t bytes = take_all(&list, n), freed = 0;
    while (list != NULL) {
        struct link *block = list, *next = block->next;
        list = next != NULL ? next->next : NULL;
        block->next = kept;
        kept = block;
        if (next != NULL) {
            do_free(next);
            freed += n;
        }
    }
    size_t got = take_all(&list, n);
    CHECK(got >= freed / 10 * 9,
          "malloc(%zu) after half of %zu bytes was freed: expected about "
          "%zu bytes, found %zu",
          n, bytes, freed, got);
    give_all(&list);
    give_all(&kept);
}

TEST_IN_CHILD(failures_leave_all_intact)
{
    struct link *list = NULL;
    void *p = NEED("malloc", do_malloc(MiB)), *small = NEED("malloc", do_malloc(100));
    pattern_fill(p, MiB, 1);
    pattern_fill(small, 100, 2);
    if (!limit_address_space())
        return;
    take_all(&list, 100000);
    void *const untouched = &errno;
    for (size_t n = ROOM; n <= 16 * ROOM; n *= 2) {
        errno = 0;
        CHECK_NULL("realloc at the end of memory", do_realloc(p, n));
        CHECK_ERROR("errno of realloc", errno, ENOMEM);
        CHECK_PATTERN(p, MiB, 1);
        errno = 0;
        CHECK_NULL("realloc at the end of memory", do_realloc(small, n));
        CHECK_ERROR("errno of realloc", errno, ENOMEM);
        CHECK_PATTERN(small, 100, 2);
        errno = 0;
        CHECK_NULL("calloc at the end of memory", do_calloc(n / 8, 8));
        CHECK_ERROR("errno of calloc", errno, ENOMEM);
        errno = 0;
        CHECK_NULL("aligned_alloc at the end of memory", do_aligned_alloc(65536, n));
        CHECK_ERROR("errno of aligned_alloc", errno, ENOMEM);
        void *q = untouched;
        errno = 4321;
        CHECK_ERROR("posix_memalign at the end of memory", do_posix_memalign(&q, 65536, n), ENOMEM);
        CHECK_ERROR("errno of posix_memalign", errno, ENOMEM);
        CHECK(q == untouched, "*memptr of posix_memalign: expected %p, found %p", untouched, q);
    }
    give_all(&list);
    p = NEED("realloc after memory came back", do_realloc(p, 4 * MiB));
    CHECK_PATTERN(p, MiB, 1);
    do_free(p);
    do_free(small);
}

static void in_a_process(void (*test)(void *), size_t n)
{
    struct child_end end = child_end(test, (void *)n);
    CHECK(end.status == 0, "process for size %zu: expected its end with 0, found status %#x, %s", n,
          (unsigned)end.status, end.said);
}

TEST(every_size)
{
    for (size_t i = 0; i < SIZES; i++)
        in_a_process(one_size_then_others, sizes[i]);
}

TEST(holes)
{
    for (size_t i = 0; i < SIZES - 1; i++)
        in_a_process(holes_serve, sizes[i]);
}

int main(void) { return tests_main("exhaust"); }

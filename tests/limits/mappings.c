/* The process has as many mappings as the kernel permits (vm.max_map_count): the kernel can neither
 * make a mapping nor split one to unmap a part of it. free returns and preserves errno, contents
 * stay, and freed memory can be allocated again. When there are mappings again, everything works
 * and memory goes back. Each case is a separate process, with a few mappings left or none. */
#include "../api/check.h"
#include "../stress/statm.h"

#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#define MARK 4321
#define MOST ((size_t)1 << 22) /* pages of the strip: twice the mappings */
#define BLOCKS 160

static struct {
    unsigned char *start;
    size_t size;
    unsigned number;
} blocks[BLOCKS];

static const size_t sizes[] = {24,  500,     3000,    20000,   40000,   100000,   250000,  400000,
                               MiB, 3 * MiB, 3 * MiB, 5 * MiB, 2 * MiB, 17 * MiB, 2 * MiB, 700000};
#define SIZES (sizeof sizes / sizeof *sizes)

static unsigned char *strip;
static size_t strip_used, page;

static void errno_kept(const char *call, size_t n)
{
    CHECK(errno == MARK, "errno after %s, %zu bytes: expected %d as before, found %d (%s)", call, n,
          MARK, errno, error_name(errno));
}

/* Pages of changing protection in one mapping: each is one more for the kernel's count. */
static bool use_all_mappings(size_t left)
{
    strip = mmap(NULL, MOST * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (!CHECK(strip != MAP_FAILED, "mmap of the test: %s", error_name(errno)))
        return false;
    for (strip_used = 0; strip_used + 1 < MOST; strip_used += 2)
        if (mprotect(strip + strip_used * page, page, PROT_READ) != 0)
            break;
    bool at_limit = strip_used + 1 < MOST;
    for (; left > 0 && strip_used >= 2; left -= left > 1 ? 2 : 1) {
        strip_used -= 2;
        mprotect(strip + strip_used * page, page, PROT_NONE);
    }
    return at_limit;
}

static bool make(unsigned i, size_t n)
{
    errno = MARK;
    unsigned char *p = i % 3 == 0 ? do_calloc(n, 1) : do_malloc(n);
    if (p == NULL) {
        CHECK_ERROR("errno of an allocation that failed", errno, ENOMEM);
        return false;
    }
    errno_kept("malloc", n);
    if (i % 3 == 0)
        CHECK_BYTES(p, 0, n);
    blocks[i].start = p;
    blocks[i].size = n;
    blocks[i].number++;
    pattern_fill(p, n, i + blocks[i].number);
    return true;
}

static void give(unsigned i)
{
    if (blocks[i].start != NULL)
        CHECK_PATTERN(blocks[i].start, blocks[i].size, i + blocks[i].number);
    errno = MARK;
    do_free(blocks[i].start);
    errno_kept("free", blocks[i].size);
    blocks[i].start = NULL;
}

static void resize(unsigned i, size_t n)
{
    if (blocks[i].start == NULL)
        return;
    size_t old = blocks[i].size;
    errno = MARK;
    unsigned char *p = do_realloc(blocks[i].start, n);
    if (p == NULL) {
        CHECK_ERROR("errno of a realloc that failed", errno, ENOMEM);
        CHECK(n > old, "realloc from %zu to %zu bytes: expected a block, found NULL", old, n);
        return;
    }
    errno_kept("realloc", n);
    CHECK_PATTERN(p, n < old ? n : old, i + blocks[i].number);
    blocks[i].start = p;
    blocks[i].size = n;
    pattern_fill(p, n, i + blocks[i].number);
}

static void one_case(void *number)
{
    size_t left = (size_t)number;
    do_free(NEED("malloc", do_malloc(100)));
    size_t before = statm_read().mapped;
    for (unsigned i = 0; i < BLOCKS; i++)
        make(i, sizes[i % SIZES]);
    if (!use_all_mappings(left)) {
        CHECK(false,
              "expected the end of mappings within %zu, found none: is vm.max_map_count "
              "larger?",
              MOST);
        return;
    }
    /* Half is freed, each second of its size, and half of that asked for again. */
    size_t freed = 0, again = 0;
    for (unsigned i = 0; i < BLOCKS; i++)
        if (i / SIZES % 2 == 0) {
            freed += blocks[i].size;
            give(i);
        }
    for (unsigned i = 0; i < BLOCKS; i++)
        if (blocks[i].start == NULL && make(i, sizes[i % SIZES]))
            again += blocks[i].size;
    CHECK(again >= freed / 2,
          "%zu bytes freed at the limit of mappings: expected that at least "
          "half serve again at the same sizes, found %zu",
          freed, again);
    for (unsigned i = 0; i < BLOCKS; i++)
        resize(i, i % 2 == 0 ? sizes[i % SIZES] / 3 + 1 : sizes[i % SIZES] * 2);
    /* All is freed, and all sizes asked for in another order. */
    for (unsigned i = 0; i < BLOCKS; i++)
        give(i * 7 % BLOCKS);
    size_t served = 0;
    for (unsigned i = 0; i < BLOCKS; i++)
        served += make(i, sizes[(i + 5) % SIZES]);
    CHECK(served >= BLOCKS / 2,
          "after all was freed at the limit of mappings: expected at least "
          "half of %d blocks again, found %zu",
          BLOCKS, served);
    for (unsigned i = 0; i < BLOCKS; i++)
        give(i);

    munmap(strip, MOST * page);
    for (unsigned i = 0; i < BLOCKS; i++)
        CHECK(make(i, sizes[i % SIZES]),
              "malloc after the limit of mappings: expected a block of "
              "%zu bytes, found NULL",
              sizes[i % SIZES]);
    for (unsigned i = 0; i < BLOCKS; i++)
        give(i);
    /* Whatever is kept for reuse goes back first. */
    CHECK_NULL("malloc of too much", do_malloc((size_t)1 << 50));
    size_t after = statm_read().mapped;
    CHECK(after <= before + 64 * MiB,
          "address space with everything freed: expected at most %zu "
          "MiB, found %zu MiB",
          before / MiB + 64, after / MiB);
    printf("%zu mappings left: %zu of %zu MiB freed served again, then %zu of %d blocks; %zu MiB "
           "of address space before, %zu after\n",
           left, again / MiB, freed / MiB, served, BLOCKS, before / MiB, after / MiB);
    fflush(stdout);
}

int main(void)
{
    static const size_t left[] = {0, 3, 8, 100};
    page = (size_t)sysconf(_SC_PAGESIZE);
    check_start("mappings");
    for (size_t i = 0; i < sizeof left / sizeof *left && check_all_passed(); i++) {
        struct child_end end = child_end(one_case, (void *)left[i]);
        CHECK(end.status == 0, "with %zu mappings left: expected the end with 0, found %#x: %s",
              left[i], (unsigned)end.status, end.said);
    }
    return check_end();
}

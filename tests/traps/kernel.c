/* What a program and the kernel may do to the pages of a heap: pages locked, kept out of forks,
 * bound to a memory node; unmapping and purging refused. And what the heap must not do: touch pages
 * that nobody wrote to, keep blocks out of core dumps or forks. */
#include "../stress/statm.h"
#include "seen.h"
#include "trap.h"

#include <malloc.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define MARK 4321

static void kept(const char *what, size_t n)
{
    CHECK(errno == MARK, "errno after %s, n = %zu: expected %d as before, found %d (%s)", what, n,
          MARK, errno, error_name(errno));
    errno = MARK;
}

/* ---- the kernel's answers, counted ---- */

static unsigned refused_unmap, refused_purge, refused_move;

/* As many mappings as the process may have: each other page of a strip becomes one. */
enum { STRIP = 1 << 20 };
static char *strip;
static size_t strip_used, page;

static void fill_up(void)
{
    while (strip_used < STRIP && mprotect(strip + strip_used * page, page, PROT_READ) == 0)
        strip_used += 2;
}

static long see(long number, const long *a)
{
    if (number == SYS_munmap && strip != NULL && a[0] != (long)strip)
        fill_up(); /* each one may make room for the next */
    long result = kernel_said(syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]));
    bool refused = (unsigned long)result >= -4095ul;
    if (number == SYS_munmap)
        refused_unmap += refused;
    else if (number == SYS_mremap)
        refused_move += refused;
    else
        refused_purge += refused && (a[2] == MADV_DONTNEED || a[2] == MADV_FREE);
    return result;
}

/* ---- the limit of mappings ---- */

enum { HUGE_BLOCKS = 12 };

/* Huge blocks side by side are one mapping to the kernel: to unmap one in the middle makes two of
 * it, which is refused once the process has as many as it may. The block's free must not tell. */
TEST(unmapping_is_refused)
{
    void *blocks[HUGE_BLOCKS];
    size_t n = 64 * MiB;
    page = (size_t)sysconf(_SC_PAGESIZE);
    for (int i = 0; i < HUGE_BLOCKS; i++) {
        blocks[i] = NEED("malloc", do_malloc(n));
        memset(blocks[i], 1, 100);
    }
    void *mapped =
        mmap(NULL, STRIP * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (!CHECK(mapped != MAP_FAILED, "mmap of the test: %s", error_name(errno)))
        return;
    strip = mapped;
    refused_unmap = 0;
    for (int i = 1; i < HUGE_BLOCKS; i += 2) {
        fill_up();
        errno = MARK;
        do_free(blocks[i]);
        kept("free", n);
    }
    fill_up();
    malloc_trim(0);
    unsigned refused = refused_unmap;
    /* What could not be unmapped serves again, and is zero where calloc says so. */
    for (int i = 1; i < HUGE_BLOCKS; i += 2) {
        errno = MARK;
        blocks[i] = do_calloc(1, n);
        if (blocks[i] == NULL) {
            CHECK_ERROR("errno of calloc", errno, ENOMEM);
            continue;
        }
        kept("calloc", n);
        CHECK_BYTES(blocks[i], 0, 100);
    }
    CHECK(blocks[1] != NULL, "a huge block freed at the limit of mappings doesn't serve again");
    munmap(strip, STRIP * page);
    strip = NULL;
    for (int i = 0; i < HUGE_BLOCKS; i++)
        do_free(blocks[i]);
    printf("kernel: %u times munmap was refused, at %zu mappings\n", refused, strip_used);
    if (strip_used < STRIP)
        CHECK(refused > 0, "munmap at the limit of mappings: expected that some are refused");
    use_the_heap(1);
}

/* ---- pages that the program locked ---- */

/* To be sure that pages are really purged. */
static void free_many_locked(size_t n, size_t total, bool through_calloc)
{
    static void *blocks[1 << 14];
    size_t count = total / n;
    for (size_t i = 0; i < count; i++) {
        blocks[i] = NEED("malloc", do_malloc(n));
        memset(blocks[i], 0xa5, n);
    }
    /* Every fourth, some of its pages. */
    bool locked = false;
    for (size_t i = 0; i < count; i += 4)
        if (mlock(blocks[i], n < 64 * KiB ? n : 64 * KiB) == 0)
            locked = true;
    if (!locked) {
        printf("kernel: no page may be locked here: blocks of %zu bytes not tested\n", n);
        through_calloc = false;
    }
    errno = MARK;
    for (size_t i = 0; i < count; i++) {
        do_free(blocks[i]);
        kept("free of locked pages", n);
    }
    for (size_t i = 0; i < count && through_calloc; i++) {
        blocks[i] = NEED("calloc", do_calloc(1, n));
        CHECK_BYTES(blocks[i], 0, n);
        kept("calloc on what was locked", n);
    }
    for (size_t i = 0; i < count && through_calloc; i++)
        do_free(blocks[i]);
    munlockall();
}

TEST(locked_pages)
{
    refused_purge = 0;
    free_many_locked(5000, 40 * MiB, true);
    free_many_locked(100000, 64 * MiB, true);
    free_many_locked(600000, 64 * MiB, true);
    free_many_locked(3 * MiB, 144 * MiB, true);
    printf("kernel: %u times a purge was refused\n", refused_purge);
}

/* mremap of what the kernel keeps in pieces, since a part is locked or not for children. */
static void resize_pieces(void)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), n = 6 * MiB;
    for (int kind = 0; kind < 3; kind++) {
        malloc_trim(0); /* or there is something kept to copy to */
        char *p = NEED("malloc", do_malloc(n)), *middle = p + n / 2;
        middle -= (uintptr_t)middle % page;
        pattern_fill(p, n, 1);
        refused_move = 0;
        int failed = kind == 0   ? mlock(middle, 4 * page)
                     : kind == 1 ? madvise(middle, MiB, MADV_DONTFORK)
                                 : madvise(middle, MiB, MADV_NOHUGEPAGE);
        if (failed)
            printf("kernel: pieces of kind %d: %s\n", kind, error_name(errno));
        errno = MARK;
        p = NEED("realloc", do_realloc(p, 40 * MiB));
        kept("realloc of a block in pieces", n);
        CHECK(failed || refused_move > 0, "mremap, kind %d: expected that it is refused", kind);
        CHECK_PATTERN(p, n, 1);
        memset(p + n, 2, 34 * MiB);
        p = NEED("realloc", do_realloc(p, 3 * MiB));
        kept("realloc to less", n);
        CHECK_PATTERN(p, 3 * MiB, 1);
        if (kind == 1)
            madvise(p - (uintptr_t)p % page, 3 * MiB, MADV_DOFORK);
        do_free(p);
        munlockall();
    }
}

/* In a child of its own: what lies where the block was before may be missing in further children.
 */
TEST(resize_in_pieces) { in_child(resize_pieces); }

/* A child needs every page that its heap may hand out. */
TEST(kept_out_of_children_for_a_while)
{
    enum { N = 100 };
    size_t n = 64 * KiB;
    void *blocks[N];
    for (int i = 0; i < N; i++) {
        blocks[i] = NEED("memalign", do_memalign(64 * KiB, n));
        memset(blocks[i], 3, n);
        CHECK(madvise(blocks[i], n, MADV_DONTFORK) == 0, "MADV_DONTFORK failed");
    }
    for (int i = 0; i < N; i++) {
        CHECK(madvise(blocks[i], n, MADV_DOFORK) == 0, "MADV_DOFORK failed");
        do_free(blocks[i]);
    }
    in_child(locked_pages);
}

static void all_locked(void)
{
    struct rlimit limit;
    getrlimit(RLIMIT_MEMLOCK, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_MEMLOCK, &limit);
    if (mlockall(MCL_CURRENT | MCL_FUTURE) != 0) {
        printf("kernel: mlockall: %s: not tested\n", error_name(errno));
        return;
    }
    free_many_locked(5000, 16 * MiB, true);
    mlockall(MCL_CURRENT | MCL_FUTURE);
    free_many_locked(600000, 48 * MiB, true);
    mlockall(MCL_CURRENT | MCL_FUTURE);
    use_the_heap(2);
    char *p = NEED("malloc", do_malloc(5 * MiB));
    pattern_fill(p, 5 * MiB, 4);
    p = NEED("realloc", do_realloc(p, 50 * MiB));
    CHECK_PATTERN(p, 5 * MiB, 4);
    do_free(p);
}

/* Everything locked, what is still to come too: every purge is refused. */
TEST(everything_locked) { in_child(all_locked); }

/* ---- nodes ---- */

TEST(bound_to_a_node)
{
    enum { PREFERRED = 1, BIND = 2, INTERLEAVE = 3, HERE = 1, NONE = 0 };
    unsigned long node_0 = 1;
    long error = syscall(SYS_set_mempolicy, INTERLEAVE, &node_0, sizeof node_0 * 8);
    if (error != 0)
        printf("kernel: set_mempolicy: %s\n", error_name(errno));
    void *p = NEED("memalign", do_memalign(64 * KiB, 512 * KiB));
    if (syscall(SYS_mbind, p, 512 * KiB, BIND, &node_0, sizeof node_0 * 8, 0) != 0)
        printf("kernel: mbind: %s\n", error_name(errno));
    memset(p, 1, 512 * KiB);
    do_free(p);
    use_the_heap(3);
    syscall(SYS_set_mempolicy, NONE, NULL, 0);
    use_the_heap(4);
}

/* ---- what the heap leaves alone ---- */

/* Fresh memory is the program's to touch first: on its node, and against no limit until then. */
static void take_untouched(size_t n)
{
    size_t count = 192 * MiB / n, before = statm_read().resident;
    for (size_t i = 0; i < count; i++)
        NEED("malloc", i % 2 ? do_malloc(n) : do_calloc(1, n));
    size_t grown = statm_read().resident - before;
    CHECK(grown < 4 * MiB,
          "resident after 192 MiB of blocks of %zu bytes that nobody wrote to: expected at most "
          "4 MiB more, found %zu KiB",
          n, grown / KiB);
}

static void take_large(void) { take_untouched(1000000); }
static void take_huge(void) { take_untouched(3 * MiB); }
static void take_very_huge(void) { take_untouched(64 * MiB); }

/* On fresh memory. */
TEST_FIRST(nothing_is_touched_before_the_program_does)
{
    in_child(take_large);
    in_child(take_huge);
    in_child(take_very_huge);
}

/* Flags of the mapping that holds `address`, as in /proc/self/smaps. */
static bool flags_of(const void *address, char *flags, size_t room)
{
    char line[512];
    bool here = false;
    FILE *file = fopen("/proc/self/smaps", "r");
    flags[0] = 0;
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        unsigned long from, to;
        if (sscanf(line, "%lx-%lx ", &from, &to) == 2)
            here = (uintptr_t)address >= from && (uintptr_t)address < to;
        else if (here && strncmp(line, "VmFlags:", 8) == 0)
            snprintf(flags, room, "%.*s ", (int)strcspn(line + 8, "\n"), line + 8);
    }
    if (file != NULL)
        fclose(file);
    return flags[0] != 0;
}

/* dd: not in core dumps, dc: not in children, wf: zero in children, lo: locked. */
TEST(blocks_are_in_core_dumps_and_in_children)
{
    static const char *const wrong[] = {" dd ", " dc ", " wf ", " lo "};
    for (size_t n = 1; n < 80 * MiB; n = n * 7 + 1) {
        char flags[512];
        void *p = NEED("malloc", do_malloc(n));
        if (!CHECK(flags_of(p, flags, sizeof flags), "no flags of the mapping of a block"))
            return;
        for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
            CHECK(strstr(flags, wrong[i]) == NULL, "mapping of %zu bytes: has the flag%s in%s", n,
                  wrong[i], flags);
        do_free(p);
    }
}

int main(void)
{
    static const long seen[] = {SYS_munmap, SYS_madvise, SYS_mremap, -1};
    calls_see(see, seen);
    return tests_main("kernel");
}

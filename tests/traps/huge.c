/* Huge pages by region (trap 49): a superslab of a larger heap has them from the start where the
 * heap grows by small blocks and the kernel is quick. It refuses them again before pages inside it
 * go back. HAKMEM_HUGE_PAGES decides. */
#include "trap.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { BLOCKS = 100000, BLOCK = 1000 }; /* 24 superslabs */
static unsigned char *blocks[BLOCKS];

/* ---- a clock by which every fault takes long, or no time ---- */

static enum { CLOCK_REAL, CLOCK_STANDS, CLOCK_JUMPS } clock_is;

#include "suite/kernel_clock.h"

/* The library's. */
int kernel_clock(clockid_t clock, struct timespec *now)
{
    static atomic_long calls;
    int result = (int)syscall(SYS_clock_gettime, clock, now);
    if (clock_is == CLOCK_JUMPS)
        now->tv_sec += atomic_fetch_add(&calls, 1);
    if (clock_is == CLOCK_STANDS)
        *now = (struct timespec){.tv_sec = 1000};
    return result;
}

/* ---- what the kernel knows of the heap ---- */

struct regions {
    size_t huge, small; /* bytes that may, and that may not, be huge pages */
};

/* The first letter of the system's mode: a(lways), m(advise), n(ever). */
static char system_mode(void)
{
    char line[64] = "";
    FILE *file = fopen("/sys/kernel/mm/transparent_hugepage/enabled", "r");
    if (file == NULL || fgets(line, sizeof line, file) == NULL)
        line[0] = '\0';
    if (file != NULL)
        fclose(file);
    char *open = strchr(line, '[');
    return open == NULL ? 'a' : open[1];
}

/* Of the mappings that hold blocks. */
static struct regions regions_now(void)
{
    static char line[512];
    struct regions found = {0, 0};
    size_t bytes = 0;
    bool ours = false, always = system_mode() == 'a';
    FILE *file = fopen("/proc/self/smaps", "r");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        uintptr_t from, to;
        if (sscanf(line, "%lx-%lx ", &from, &to) == 2) {
            bytes = to - from;
            ours = false;
            for (unsigned i = 0; i < BLOCKS && !ours; i += 1000)
                ours = (uintptr_t)blocks[i] >= from && (uintptr_t)blocks[i] < to;
        } else if (ours && strncmp(line, "VmFlags:", 8) == 0) {
            if (strstr(line, " hg") != NULL)
                found.huge += bytes;
            else if (!always || strstr(line, " nh") != NULL)
                found.small += bytes;
        }
    }
    if (file != NULL)
        fclose(file);
    return found;
}

/* ---- the test ---- */

static void fill_with(unsigned n, size_t size)
{
    for (unsigned i = 0; i < n; i++) {
        blocks[i] = NEED("malloc", do_malloc(size));
        memset(blocks[i], 1, size);
    }
}

static bool switched_on(void)
{
    const char *setting = getenv("HAKMEM_HUGE_PAGES");
    return (setting == NULL || strcmp(setting, "0") != 0) && system_mode() != 'n';
}

/* The first 16 MiB have small pages, and what follows huge ones if it is of blocks of at most a
 * page, which are touched, all of them. */
TEST_IN_CHILD(growth_by_small_blocks)
{
    clock_is = CLOCK_STANDS;
    fill_with(BLOCKS, BLOCK);
    struct regions found = regions_now();
    CHECK(found.small >= 14 * MiB, "bytes with small pages: expected 14 MiB or more, found %zu",
          found.small);
    if (switched_on())
        CHECK(found.huge >= 4 * MiB, "bytes with huge pages: expected 4 MiB or more, found %zu",
              found.huge);
    else
        CHECK_SIZE("bytes with huge pages, which are off", found.huge, 0);
}

TEST_IN_CHILD(growth_by_large_blocks)
{
    fill_with(BLOCKS / 16, 16 * BLOCK);
    CHECK_SIZE("bytes with huge pages, of large blocks", regions_now().huge, 0);
}

/* After each slow one twice as many superslabs are left alone. */
TEST_IN_CHILD(slow_kernel)
{
    clock_is = CLOCK_JUMPS;
    fill_with(BLOCKS, BLOCK);
    CHECK(regions_now().huge <= 2 * 4 * MiB, "bytes with huge pages where they are slow: %zu",
          regions_now().huge);
}

TEST_IN_CHILD(dense_superslabs_alone)
{
    bool on = switched_on();
    struct regions dense, purged;
    clock_is = CLOCK_STANDS;
    fill_with(BLOCKS, BLOCK);
    clock_is = CLOCK_REAL;
    dense = regions_now();
    printf("huge: %zu of %zu MiB have huge pages\n", dense.huge / MiB,
           (dense.huge + dense.small) / MiB);
    if (on)
        CHECK(dense.huge > 0, "bytes with huge pages in a dense heap: expected some, found none");
    else
        CHECK_SIZE("bytes with huge pages, which are off", dense.huge, 0);
    CHECK(dense.huge + dense.small >= 64 * MiB,
          "bytes with a choice: expected 64 MiB or more, found %zu", dense.huge + dense.small);
    for (unsigned i = 0; i < BLOCKS; i++)
        if (i % 1000 != 0)
            do_free(blocks[i]);
    malloc_trim(0);
    purged = regions_now();
    CHECK_SIZE("bytes with huge pages after a purge", purged.huge, 0);
    CHECK(purged.small > 0, "bytes with small pages after a purge: expected some, found none");
    for (unsigned i = 0; i < BLOCKS; i += 1000)
        do_free(blocks[i]);
}

int main(void)
{
    if (access("/sys/kernel/mm/transparent_hugepage", F_OK) != 0) {
        printf("huge: the kernel has no huge pages: not tested\n");
        return 77;
    }
    return tests_main("huge");
}

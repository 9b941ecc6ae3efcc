/* Huge pages by region (trap 49): a superslab of a larger heap gets them after all of it was in use
 * for long, and refuses them again before pages inside it go back. HAKMEM_HUGE_PAGES decides. */
#include "trap.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { BLOCKS = 100000, BLOCK = 1000 }; /* 24 superslabs */
static unsigned char *blocks[BLOCKS];

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

static void fill(void)
{
    for (unsigned i = 0; i < BLOCKS; i++) {
        blocks[i] = NEED("malloc", do_malloc(BLOCK));
        memset(blocks[i], 1, BLOCK);
    }
}

/* 64 MiB and more are freed while the blocks stay. */
static void free_elsewhere(void)
{
    enum { N = 1000, SIZE = 3000 };
    static void *others[N];
    for (int round = 0; round < 60; round++) {
        for (unsigned i = 0; i < N; i++)
            others[i] = NEED("malloc", do_malloc(SIZE));
        for (unsigned i = 0; i < N; i++)
            do_free(others[i]);
    }
}

static void dense_superslabs_alone(void)
{
    const char *setting = getenv("HAKMEM_HUGE_PAGES");
    bool on = (setting == NULL || strcmp(setting, "0") != 0) && system_mode() != 'n';
    struct regions before, dense, purged;
    fill();
    before = regions_now();
    CHECK_SIZE("bytes with huge pages, just filled", before.huge, 0);
    CHECK(before.small >= 64 * MiB, "bytes with small pages: expected 64 MiB or more, found %zu",
          before.small);
    free_elsewhere();
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
    check_start("huge");
    watchdog(300);
    if (access("/sys/kernel/mm/transparent_hugepage", F_OK) != 0) {
        printf("huge: the kernel has no huge pages: not tested\n");
        return 77;
    }
    RUN(dense_superslabs_alone);
    return check_end();
}

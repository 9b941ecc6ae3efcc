/* Huge blocks that must move to grow, again and again: contents are preserved, and no address space
 * is lost, whether the kernel moves pages or not. */
#include "../api/check.h"
#include "../stress/statm.h"

#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

TEST(growing)
{
    size_t before = statm_read().mapped;
    for (unsigned i = 0; i < 100; i++) {
        size_t n = 5 * MiB + i % 10 * MiB;
        unsigned char *p = NEED("malloc", do_malloc(n));
        /* Something else behind it. */
        void *behind = mmap(p + do_usable_size(p) + 64 * KiB - 4 * KiB, 4 * KiB, PROT_NONE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
        void *other = NEED("malloc", do_malloc(n));
        pattern_fill(p, n, i);
        errno = 4321;
        p = NEED("realloc", do_realloc(p, 3 * n));
        CHECK_ERROR("errno after realloc", errno, 4321);
        CHECK_PATTERN(p, n, i);
        do_free(p);
        do_free(other);
        if (behind != MAP_FAILED)
            munmap(behind, 4 * KiB);
    }
    CHECK_NULL("malloc of too much", do_malloc((size_t)1 << 50)); /* what is kept goes back */
    size_t after = statm_read().mapped;
    CHECK(after <= before + 32 * MiB,
          "address space after 100 blocks of 15 MiB and more have come and gone: expected at most "
          "%zu MiB, found %zu MiB",
          before / MiB + 32, after / MiB);
    printf("address space: %zu MiB before, %zu MiB after\n", before / MiB, after / MiB);
}

int main(void) { return tests_main("move"); }

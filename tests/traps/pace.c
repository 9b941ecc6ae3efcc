/* How much of its memory one call of malloc or free gives back: at most 2 MiB beyond its own block,
 * however much lies idle, so that no caller waits for long. And all of it goes back in the end.
 *
 * What goes back is counted where the kernel is asked to take it: only pages that are resident. */
#include "seen.h"
#include "trap.h"

#include <malloc.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define CALL_MOST (2 * MiB)

static size_t given; /* bytes, by the call that is going on */

static size_t resident_in(void *start, size_t length)
{
    static unsigned char pages[1 << 16];
    size_t page = (size_t)sysconf(_SC_PAGESIZE), sum = 0;
    for (size_t at = 0; at < length; at += sizeof pages * page) {
        size_t part = length - at < sizeof pages * page ? length - at : sizeof pages * page;
        if (mincore((char *)start + at, part, pages) != 0)
            continue;
        for (size_t i = 0; i < part / page; i++)
            sum += (pages[i] & 1) * page;
    }
    return sum;
}

static long see(long number, const long *a)
{
    if (number == SYS_munmap || a[2] == MADV_DONTNEED || a[2] == MADV_FREE)
        given += resident_in((void *)a[0], (size_t)a[1]); // NOLINT(performance-no-int-to-ptr)
    return kernel_said(syscall(number, a[0], a[1], a[2]));
}

static size_t worst;

static void call_was(const char *what, size_t own)
{
    size_t beyond = given > own ? given - own : 0;
    worst = beyond > worst ? beyond : worst;
    CHECK(beyond <= CALL_MOST, "%s of %zu bytes gave back %zu KiB, %zu KiB beyond its block", what,
          own, given / KiB, beyond / KiB);
    given = 0;
}

static void *counted_malloc(size_t n)
{
    given = 0;
    void *p = NEED("malloc", malloc(n));
    call_was("malloc", n);
    return memset(p, 1, n);
}

static void counted_free(void *p, size_t n)
{
    given = 0;
    free(p);
    call_was("free", n);
}

static void rest(void)
{
    struct timespec time = {0, 200000000};
    nanosleep(&time, NULL);
}

enum { MOST = 40000 };
static struct {
    char *p;
    size_t n;
} blocks[MOST];

/* Blocks of about so many bytes, of 192 MiB in all; nine tenths are freed, then the program rests,
 * and goes on. */
static void most_is_freed(size_t least, size_t largest)
{
    unsigned count = 0;
    for (size_t sum = 0; sum < 192 * MiB && count < MOST; sum += blocks[count++].n) {
        blocks[count].n = least + count * 7919 % (largest - least + 1);
        blocks[count].p = counted_malloc(blocks[count].n);
    }
    for (unsigned i = 0; i < count; i++)
        if (i % 10 != 0)
            counted_free(blocks[i].p, blocks[i].n);
    for (int round = 0; round < 3; round++) {
        rest();
        for (unsigned i = 0; i < count; i += 10) {
            counted_free(blocks[i].p, blocks[i].n);
            blocks[i].p = counted_malloc(blocks[i].n);
        }
    }
    for (unsigned i = 0; i < count; i += 10)
        counted_free(blocks[i].p, blocks[i].n);
}

TEST(of_pages_in_slabs) { most_is_freed(5000, 9000); }
TEST(of_whole_slices) { most_is_freed(40000, 250000); }
TEST(of_large_blocks) { most_is_freed(300000, 2000000); }
TEST(of_huge_blocks) { most_is_freed(3000000, 30000000); }

/* A block that needs more than ever has what was left idle given back: no more than its own bytes
 * and 2 MiB in its call. */
TEST(for_a_new_record)
{
    for (int round = 0; round < 3; round++) {
        char *huge = counted_malloc(64 * MiB);
        counted_free(huge, 64 * MiB);
        for (unsigned i = 0; i < 6600; i++)
            blocks[i].p = counted_malloc(10000);
        for (unsigned i = 0; i < 6600; i++)
            counted_free(blocks[i].p, 10000);
    }
}

int main(void)
{
    static const long seen[] = {SYS_munmap, SYS_madvise, -1};
    check_start("pace");
    calls_see(see, seen);
    tests_run();
    CHECK(worst > 0, "nothing that was given back was seen");
    printf("pace: at most %zu KiB beyond its own block in one call\n", worst / KiB);
    return check_end();
}

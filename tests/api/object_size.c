/* hakmem_object_size: of addresses in blocks of every kind, at their ends, and outside. The test is
 * run by default, in a hardened heap, and with HAKMEM_GUARDS_A_SECOND=1000. */
#include "check.h"

#include <hakmem/hakmem.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static bool hardened;

/* How many bytes are left, in a child that says nothing; whether it was ended. */
static bool ended(const void *p, size_t *left)
{
    int ends[2], status = 0;
    *left = 1;
    if (!CHECK(pipe(ends) == 0, "pipe: %s", error_name(errno)))
        return false;
    pid_t child = fork();
    if (child == 0) {
        close(STDERR_FILENO);
        size_t found = hakmem_object_size(p);
        _exit(write(ends[1], &found, sizeof found) != sizeof found);
    }
    close(ends[1]);
    bool got = read(ends[0], left, sizeof *left) == sizeof *left;
    close(ends[0]);
    waitpid(child, &status, 0);
    CHECK(got ? status == 0 : WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT,
          "status of the child: %#x", (unsigned)status);
    return !got;
}

static void expect_end(const char *what, const void *p)
{
    size_t left;
    bool end = ended(p, &left);
    CHECK(end, "%s: expected SIGABRT, found %zu bytes", what, left);
}

/* The end of the block in front of it looks so, too. */
static void expect_end_or_none(const char *what, const void *p)
{
    size_t left;
    bool end = ended(p, &left);
    CHECK(end || (!hardened && left == 0), "%s: expected SIGABRT, found %zu bytes", what, left);
}

static void expect_left(char *p)
{
    size_t usable = do_usable_size(p);
    size_t offsets[] = {0, 1, 5, usable / 2, usable - 1, usable};
    for (size_t i = 0; i < sizeof offsets / sizeof *offsets; i++)
        if (offsets[i] <= usable &&
            (offsets[i] < usable || hakmem_object_size(p + offsets[i] - 1) == 1)) {
            size_t left = hakmem_object_size(p + offsets[i]);
            bool next = !hardened && offsets[i] == usable; /* perhaps another block begins there */
            CHECK(next || left == usable - offsets[i],
                  "%zu bytes into %zu: expected %zu, found %zu", offsets[i], usable,
                  usable - offsets[i], left);
        }
}

static const size_t sizes[] = {1,    8,       24,          40,      100,     1000,   4000,
                               8000, 32760,   32768,       40000,   65536,   131072, 300000,
                               MiB,  2 * MiB, 2 * MiB + 1, 3 * MiB, 64 * MiB};
#define SIZES (sizeof sizes / sizeof *sizes)

TEST(blocks_of_every_size)
{
    for (size_t i = 0; i < SIZES; i++) {
        char *p = NEED("malloc", do_malloc(sizes[i]));
        expect_left(p);
        do_free(p);
        for (size_t align = 64; align <= 64 * KiB; align *= 32) {
            p = NEED("aligned_alloc", do_aligned_alloc(align, sizes[i]));
            expect_left(p);
            do_free(p);
        }
    }
}

/* Among them are guarded ones, where the environment asks for them. */
TEST(many_blocks)
{
    static char *blocks[3000];
    for (size_t i = 0; i < 3000; i++) {
        if (i % 100 == 0)
            usleep(1000);
        blocks[i] = NEED("malloc", do_malloc(i % 500 * 8 + 1));
    }
    size_t guarded = 0;
    for (size_t i = 0; i < 3000; i++) {
        size_t usable = do_usable_size(blocks[i]);
        CHECK_SIZE("bytes", hakmem_object_size(blocks[i]), usable);
        if (usable != i % 500 * 8 + 1 || guarded++ != 0)
            continue; /* a guarded block has the bytes requested, others never an odd number */
        CHECK_SIZE("the end of a guarded block", hakmem_object_size(blocks[i] + usable), 0);
        expect_end("past a guarded block", blocks[i] + usable + 1);
    }
    CHECK(guarded > 0 || getenv("HAKMEM_GUARDS_A_SECOND") == NULL, "no guarded block");
    for (size_t i = 0; i < 3000; i++)
        do_free(blocks[i]);
}

TEST(what_is_none_of_ours)
{
    static char of_the_program[100];
    char on_the_stack[100];
    void *mapped = mmap(NULL, 8 * KiB, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK_SIZE("null", hakmem_object_size(NULL), 0);
    CHECK_SIZE("static memory", hakmem_object_size(of_the_program + 3), SIZE_MAX);
    CHECK_SIZE("the stack", hakmem_object_size(on_the_stack + 5), SIZE_MAX);
    CHECK_SIZE("a mapping", hakmem_object_size((char *)mapped + 4 * KiB), SIZE_MAX);
    CHECK_SIZE("code", hakmem_object_size((void *)(uintptr_t)what_is_none_of_ours), SIZE_MAX);
    CHECK_SIZE("a number", hakmem_object_size((void *)(uintptr_t)1), SIZE_MAX);
    CHECK_SIZE("the last number", hakmem_object_size((void *)UINTPTR_MAX), SIZE_MAX);
    munmap(mapped, 8 * KiB);
}

/* Of a block whose memory has gone back to the kernel nothing is known, perhaps. */
static void expect_end_or_unknown(const char *what, const void *p)
{
    size_t left;
    bool end = ended(p, &left);
    CHECK(end || left == SIZE_MAX, "%s: expected SIGABRT or SIZE_MAX, found %zu bytes", what, left);
}

TEST(freed_blocks)
{
    for (size_t i = 0; i < SIZES; i++) {
        char *p = NEED("malloc", do_malloc(sizes[i]));
        do_free(p);
        if (sizes[i] > 2 * MiB) {
            expect_end_or_unknown("a huge one freed", p);
            expect_end_or_unknown("inside of a huge one freed", p + 33000);
            continue;
        }
        expect_end_or_none("freed", p);
        if (sizes[i] >= 24)
            expect_end("inside of a freed one", p + 17);
        if (sizes[i] >= 40000)
            expect_end("far inside of a freed one", p + 33000);
    }
}

TEST(past_the_end)
{
    for (size_t i = 0; i < SIZES && hardened; i++) {
        char *p = NEED("malloc", do_malloc(sizes[i]));
        size_t usable = do_usable_size(p);
        if (usable <= 32 * KiB)
            expect_end("past the end", p + usable + 1);
        do_free(p);
    }
}

TEST(blocks_of_no_bytes)
{
    void *p = NEED("malloc(0)", do_malloc(0));
    CHECK_SIZE("malloc(0)", hakmem_object_size(p), hardened ? 0 : do_usable_size(p));
    do_free(p);
    expect_end_or_none("a freed one of no bytes", p);
}

int main(void)
{
    const char *preset = getenv("HAKMEM_PRESET");
    hardened = preset != NULL && strcmp(preset, "hardened") == 0;
    return tests_main("object_size");
}

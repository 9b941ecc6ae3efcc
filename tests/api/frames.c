/* The stack of a sample goes on beyond code without unwind tables by frame pointers: this file has
 * none of those, and calls code that it makes while it runs. Where a frame pointer is anything
 * else, the program goes on. The test sets HAKMEM_PROFILE_RATE to 4 KiB. */
#include "check.h"

#include <hakmem/hakmem.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define CALLED __attribute__((noinline))
#define BLOCK (64 * KiB)
#define FUNCTION_MOST 256 /* bytes */
#define TRIES 20000

#if defined(__x86_64__)
/* push %rbp; mov %rsp, %rbp; call *%rdi; pop %rbp; ret */
static const unsigned char code[] = {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x5d, 0xc3};
__asm__(".text\n"
        "with_pointer:\n\t"
        "push %rbp\n\t"
        "mov %rsi, %rbp\n\t"
        "call malloc@PLT\n\t"
        "nop\n\t" /* else it is certain how it returns */
        "pop %rbp\n\t"
        "ret");
#elif defined(__aarch64__)
/* stp x29, x30, [sp, #-16]!; mov x29, sp; blr x0; ldp x29, x30, [sp], #16; ret */
static const uint32_t code[] = {0xa9bf7bfd, 0x910003fd, 0xd63f0000, 0xa8c17bfd, 0xd65f03c0};
__asm__(".text\n"
        "with_pointer:\n\t"
        "stp x29, x30, [sp, #-16]!\n\t"
        "mov x29, x1\n\t"
        "bl malloc\n\t"
        "ldp x29, x30, [sp], #16\n\t"
        "ret");
#endif
void *with_pointer(size_t, uintptr_t); /* malloc with this frame pointer */

static void *volatile kept;
static volatile int result; /* so that no call is the last thing that a function does */

CALLED static void keep(void)
{
    kept = NEED("malloc", do_malloc(BLOCK));
    result++;
}

CALLED static void second(void)
{
    keep();
    result++;
}

CALLED static void first(void)
{
    volatile char large[5000] = {1};
    second();
    result += large[1];
}

/* The code that was made calls it. */
CALLED static void called(void)
{
    keep();
    result++;
}

static void (*made)(void (*)(void));

CALLED static void calls(void)
{
    made(called);
    result++;
}

static bool is_in(uintptr_t address, uintptr_t function)
{
    return address - function < FUNCTION_MOST;
}

/* Whether a site's stack, as a profile has it, has calls in these functions, one after another. */
static bool has_stack(const char *stack, const uintptr_t *functions, size_t count)
{
    size_t reached = 0;
    for (char *end; reached < count && *stack == ' '; stack = end) {
        uintptr_t address = strtoull(stack + 1, &end, 16);
        if (is_in(address, functions[reached]))
            reached++;
        else if (reached > 0)
            return false;
    }
    return reached == count;
}

static void expect_stack(const char *what, const uintptr_t *functions, size_t count)
{
    static char text[4 * MiB];
    int file = memfd_create("profile", 0);
    CHECK_ERROR("hakmem_profile_write", hakmem_profile_write(file), 0);
    ssize_t length = pread(file, text, sizeof text - 1, 0);
    close(file);
    text[length > 0 ? length : 0] = 0;
    bool found = false;
    for (const char *at = text; (at = strstr(at, "] @")) != NULL; at += 3)
        found |= has_stack(at + 3, functions, count);
    CHECK(found, "%s: not in the profile", what);
}

TEST(without_tables)
{
    const uintptr_t way[] = {(uintptr_t)keep, (uintptr_t)second, (uintptr_t)first};
    first();
    expect_stack("functions without unwind tables", way, 3);
    do_free(kept);
}

TEST(made_at_run_time)
{
    void *page = NEED(
        "mmap", mmap(NULL, 4 * KiB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    char *start = (char *)page + 64;
    memcpy(start, code, sizeof code);
    CHECK(mprotect(page, 4 * KiB, PROT_READ | PROT_EXEC) == 0, "mprotect");
    __builtin___clear_cache(start, start + sizeof code);
    memcpy(&made, &start, sizeof made);
    calls();
    const uintptr_t way[] = {(uintptr_t)keep, (uintptr_t)called, (uintptr_t)start,
                             (uintptr_t)calls};
    expect_stack("code that was made", way, 4);
    do_free(kept);
}

static uint64_t random_next(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 20;
}

/* On the stack lie addresses after calls, of the stack and of nothing, which may be taken for
 * frames. */
TEST(anything_as_frame_pointer)
{
    uintptr_t words[512];
    uintptr_t here = (uintptr_t)words;
    uint64_t state = 4711;
    const uintptr_t odd[] = {0, 1, 8, 4096, UINTPTR_MAX, UINTPTR_MAX - 15, (uintptr_t)1 << 47};
    for (int i = 0; i < TRIES; i++) {
        for (int k = 0; k < 512; k++) {
            uint64_t r = random_next(&state);
            words[k] = r % 3 == 0   ? (uintptr_t)__builtin_return_address(0)
                       : r % 3 == 1 ? odd[r / 4 % (sizeof odd / sizeof *odd)]
                                    : here + r / 4 % 512 * 8;
        }
        uint64_t r = random_next(&state);
        do_free(with_pointer(BLOCK, r % 3 == 0 ? odd[r / 4 % (sizeof odd / sizeof *odd)]
                                               : here + r / 4 % 600 * 8));
    }
    CHECK(state != 4711, "no block was allocated");
}

int main(void)
{
    CHECK_ERROR("start", hakmem_profile_start(), 0);
    return tests_main("frames");
}

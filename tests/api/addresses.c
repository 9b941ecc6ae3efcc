/* Addresses that differ from a block's in one bit: outside the window, above the 47, 48 or 52 bits
 * that a kernel uses, and where processors let programs keep tags (traps 51, 52). Passing one is
 * reported as no block, and nothing is read or written there. And addresses where no block may lie.
 */
#include "check.h"

#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static void pass_to_free(void *p) { do_free(p); }
static void pass_to_realloc(void *p) { do_free(do_realloc(p, 100)); }
static void pass_to_usable_size(void *p) { do_usable_size(p); }

/* Whether the child that called f(p) died by SIGABRT after a line with `text` in it. */
static void expect_report(void (*f)(void *), const char *name, void *p)
{
    char found[2048], text[64];
    int ends[2], status = 0;
    snprintf(text, sizeof text, "hakmem: %s(%#zx)", name, (size_t)p);
    if (!CHECK(pipe(ends) == 0, "pipe: %s", error_name(errno)))
        return;
    pid_t child = fork();
    if (child == 0) {
        const struct rlimit none = {0, 0};
        setrlimit(RLIMIT_CORE, &none);
        dup2(ends[1], STDERR_FILENO);
        f(p);
        _exit(0);
    }
    close(ends[1]);
    size_t length = 0;
    ssize_t got;
    while (length < sizeof found - 1 &&
           (got = read(ends[0], found + length, sizeof found - 1 - length)) > 0)
        length += (size_t)got;
    found[length] = 0;
    close(ends[0]);
    waitpid(child, &status, 0);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT,
          "%s: expected SIGABRT, found status %#x and: %s", text, (unsigned)status, found);
    CHECK(strstr(found, text) != NULL, "expected a line with %s, found: %s", text, found);
}

static void one_bit_more(void)
{
    void *small = NEED("malloc", do_malloc(100));
    void *large = NEED("malloc", do_malloc(1 * MiB));
    for (unsigned bit = 37; bit < 64; bit++) {
        uintptr_t tag = (uintptr_t)1 << bit;
        expect_report(pass_to_free, "free", (void *)((uintptr_t)small ^ tag));
        expect_report(pass_to_free, "free", (void *)((uintptr_t)large ^ tag));
        expect_report(pass_to_realloc, "realloc", (void *)((uintptr_t)small ^ tag));
        expect_report(pass_to_usable_size, "malloc_usable_size", (void *)((uintptr_t)small ^ tag));
    }
    do_free(small);
    do_free(large);
}

/* CLISP maps its heap there when it starts, over what lies there. */
static void none_where_another_program_has_its_own(void)
{
    static void *blocks[2000];
    for (unsigned i = 0; i < 2000; i++) {
        blocks[i] = NEED("malloc", do_malloc((size_t)1 << i % 23));
        CHECK((uintptr_t)blocks[i] >> 44 != 1, "a block at %p, from 16 to 32 TiB", blocks[i]);
    }
    for (unsigned i = 0; i < 2000; i++)
        do_free(blocks[i]);
}

int main(void)
{
    check_start("addresses");
    RUN(one_bit_more);
    RUN(none_where_another_program_has_its_own);
    return check_end();
}

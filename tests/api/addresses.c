/* Addresses that differ from a block's in one bit: outside the window, above the 47, 48 or 52 bits
 * that a kernel uses, and where processors let programs keep tags (traps 51, 52). Passing one is
 * reported as no block, and nothing is read or written there. And addresses where no block may lie.
 */
#include "check.h"

#include <stdio.h>

static void pass_to_free(void *p) { do_free(p); }
static void pass_to_realloc(void *p) { do_free(do_realloc(p, 100)); }
static void pass_to_usable_size(void *p) { do_usable_size(p); }

static void expect_report(void (*f)(void *), const char *name, uintptr_t address)
{
    char words[64];
    snprintf(words, sizeof words, "hakmem: %s(%#zx)", name, (size_t)address);
    CHECK_ABORTS(f, (void *)address, words);
}

TEST(one_bit_more)
{
    void *small = NEED("malloc", do_malloc(100));
    void *large = NEED("malloc", do_malloc(1 * MiB));
    for (unsigned bit = 37; bit < 64; bit++) {
        uintptr_t tag = (uintptr_t)1 << bit;
        expect_report(pass_to_free, "free", (uintptr_t)small ^ tag);
        expect_report(pass_to_free, "free", (uintptr_t)large ^ tag);
        expect_report(pass_to_realloc, "realloc", (uintptr_t)small ^ tag);
        expect_report(pass_to_usable_size, "malloc_usable_size", (uintptr_t)small ^ tag);
    }
    do_free(small);
    do_free(large);
}

/* CLISP maps its heap there when it starts, over what lies there. */
TEST(none_where_another_program_has_its_own)
{
    static void *blocks[2000];
    for (unsigned i = 0; i < 2000; i++) {
        blocks[i] = NEED("malloc", do_malloc((size_t)1 << i % 23));
        CHECK((uintptr_t)blocks[i] >> 44 != 1, "a block at %p, from 16 to 32 TiB", blocks[i]);
    }
    for (unsigned i = 0; i < 2000; i++)
        do_free(blocks[i]);
}

int main(void) { return tests_main("addresses"); }

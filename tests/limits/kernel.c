/* Replaces the kernel under a test program by another one; HAKMEM_TESTS_KERNEL in the environment
 * names it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "os_fake.h"

#define OPTIONAL                                                                    \
    (FAKE_BIT(madvise) | FAKE_BIT(mremap) | FAKE_BIT(prctl) | FAKE_BIT(getrandom) | \
     FAKE_BIT(affinity))

static const struct {
    const char *name;
    struct os_fake kernel;
} kernels[] = {
    {"page_16k", {.page = 16 * KiB}},
    {"page_64k", {.page = 64 * KiB}},
    {"bits_39", {.bits = 39}},
    {"filter_eperm", {.refused = OPTIONAL, .refused_error = EPERM}},
    {"filter_enosys", {.refused = OPTIONAL, .refused_error = ENOSYS}},
    {"again", {.refused = FAKE_BIT(madvise), .refused_error = EAGAIN}},
};

static void say(void)
{
    printf("system calls:");
    for (unsigned call = 0; call <= FAKE_ANY; call++)
        printf(" %s %zu", fake_names[call], os_fake.calls[call]);
    printf(", refused %zu\n", os_fake.failed);
}

/* Before the tests' own constructors, which allocate. */
__attribute__((constructor(101))) static void start_kernel(void)
{
    const char *name = getenv("HAKMEM_TESTS_KERNEL");
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++)
        if (name != NULL && strcmp(name, kernels[i].name) == 0) {
            os_fake = kernels[i].kernel;
            atexit(say);
            return;
        }
    fprintf(stderr, "HAKMEM_TESTS_KERNEL: expected the name of a kernel, found %s\n",
            name != NULL ? name : "nothing");
    exit(1);
}

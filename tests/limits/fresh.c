/* A class that has many slabs gets the memory of a new one with one call, and where the kernel or a
 * filter refuses that, it is asked no second time. */
#include <errno.h>
#include <string.h>

#include "../api/check.h"
#include "hakmem/hakmem.h"
#include "learn/laws.h"
#include "os_fake.h"

#define SIZE 1000
#define SLAB (64 * KiB)

/* Fills so many slabs with blocks; returns how many calls of madvise that takes. */
static size_t calls_for(size_t slabs)
{
    size_t before = os_fake.calls[FAKE_madvise];
    for (size_t i = 0; i < slabs * (SLAB / SIZE); i++) {
        unsigned char *p = hakmem_malloc(SIZE);
        CHECK(p != NULL, "block %zu: expected one, found NULL", i);
        CHECK_BYTES(memset(p, 7, SIZE), 7, SIZE);
    }
    return os_fake.calls[FAKE_madvise] - before;
}

/* Beside these calls there may be two for each superslab of 64 slabs, for huge pages. */
static int error;

static void grows(void)
{
    const size_t few = LAW_TINY_PART / 2, many = 200;
    os_fake.refused_error = error;
    os_fake.refused = error != 0 ? FAKE_BIT(madvise) : 0;
    size_t first = calls_for(few);
    CHECK(first <= 2, "%zu slabs: expected no slab to come whole, found %zu calls", few, first);
    size_t calls = calls_for(many);
    if (error == 0)
        CHECK(calls >= many / 2, "%zu slabs more: expected a call for most, found %zu", many,
              calls);
    else
        CHECK(calls <= 20, "%zu slabs more, error %d: expected one call, found %zu", many, error,
              calls);
}

int main(void)
{
    static const int errors[] = {0, EINVAL, EPERM, ENOSYS, EACCES};
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
        error = errors[i];
        in_child(grows);
    }
    return check_end();
}

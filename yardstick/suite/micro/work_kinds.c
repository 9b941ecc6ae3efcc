/* The other entry points: calloc, posix_memalign, malloc_usable_size. */
#include "block.h"
#include "work.h"

#include <malloc.h>

/* ---- calloc */

static ALWAYS_INLINE unsigned char *zeroed_make(size_t size, enum touch touch, bool check)
{
    unsigned char *block = calloc(1, size);
    if (__builtin_expect(block == NULL, 0))
        give_up(EXIT_NO_MEMORY, "calloc(1, %zu) found no memory", size);
    KEEP(block);
    if (check)
        for (size_t i = 0; i < size; i++)
            if (block[i] != 0)
                give_up(EXIT_CONTENT, "byte %zu of %zu from calloc is %02x", i, size, block[i]);
    block_touch(block, size, touch);
    KEEP(block);
    return block;
}

void work_calloc(const struct params *p, struct outcome *out)
{
    const size_t size = p->min;
    clock_start();
    for (uint64_t i = 0; i < p->iterations; i++)
        free(zeroed_make(size, TOUCH_PAGES, p->check));
    clock_stop(out);
    out->operations = 2 * p->iterations;
    out->checksum = p->iterations * size;
}

void work_calloc_fresh(const struct params *p, struct outcome *out)
{
    const size_t size = p->min;
    /* Written before the clock starts: page faults of the table would be a tenth of the row's. */
    void **slot = own_memory(p->slots * sizeof *slot);
    memset(slot, 0, p->slots * sizeof *slot);
    KEEP(slot);

    clock_start();
    for (uint64_t i = 0; i < p->slots; i++)
        slot[i] = zeroed_make(size, TOUCH_FIRST, p->check);
    clock_stop(out);
    out->operations = p->slots;
    out->checksum = p->slots * size;
    for (uint64_t i = 0; i < p->slots; i++)
        free(slot[i]);
    own_release(slot, p->slots * sizeof *slot);
}

/* ---- aligned */

void work_aligned(const struct params *p, struct outcome *out)
{
    const size_t alignment = p->batch, size = p->min;
    unsigned char **slot = own_memory(p->slots * sizeof *slot);

    clock_start();
    for (uint64_t i = 0; i < p->iterations; i++) {
        for (uint64_t k = 0; k < p->slots; k++) {
            void *block;
            if (posix_memalign(&block, alignment, size) != 0)
                give_up(EXIT_NO_MEMORY, "posix_memalign(%zu, %zu) found no memory", alignment,
                        size);
            if (((uintptr_t)block & (alignment - 1)) != 0)
                give_up(EXIT_CONTENT, "%p is not aligned to %zu bytes", block, alignment);
            slot[k] = block;
            slot[k][0] = (unsigned char)k;
            KEEP(block);
        }
        for (uint64_t k = 0; k < p->slots; k++) {
            if (slot[k][0] != (unsigned char)k)
                give_up(EXIT_CONTENT, "aligned block %p: first byte %02x, written was %02x",
                        (void *)slot[k], slot[k][0], (unsigned char)k);
            free(slot[k]);
        }
    }
    clock_stop(out);
    out->operations = 2 * p->iterations * p->slots;
    out->checksum = p->iterations * p->slots * size;
    own_release(slot, p->slots * sizeof *slot);
}

/* ---- malloc_usable_size */

void work_usable(const struct params *p, struct outcome *out)
{
    void **slot = own_memory(p->slots * sizeof *slot);
    for (uint64_t i = 0; i < p->slots; i++)
        slot[i] = block_make(p->min, p->touch, false);

    uint64_t at = 0;
    clock_start();
    for (uint64_t i = 0; i < p->iterations; i++) {
        if (malloc_usable_size(slot[at]) < p->min)
            give_up(EXIT_CONTENT, "block %p of %ju bytes is told to hold fewer", slot[at],
                    (uintmax_t)p->min);
        if (++at == p->slots)
            at = 0;
    }
    clock_stop(out);
    out->operations = p->iterations;
    out->checksum = p->iterations * p->min;
    for (uint64_t i = 0; i < p->slots; i++)
        free(slot[i]);
    own_release(slot, p->slots * sizeof *slot);
}

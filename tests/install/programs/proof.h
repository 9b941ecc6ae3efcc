/* Whether malloc is hakmem's: hakmem's statistics count only blocks of hakmem. */
#ifndef PROOF_H
#define PROOF_H

#include <hakmem/hakmem.h>
#include <stdio.h>
#include <stdlib.h>

static inline size_t counted(void)
{
    struct hakmem_stats stats;
    if (hakmem_stats(&stats, sizeof stats) < sizeof stats.mapped + sizeof stats.program)
        abort();
    return stats.program;
}

/* What hakmem counts of 64 blocks, which hold 4 MiB. */
static inline size_t counted_of(void *(*allocate)(size_t), void (*release)(void *))
{
    void *blocks[64];
    size_t before = counted();
    for (int i = 0; i < 64; i++)
        if ((blocks[i] = allocate(65536)) == NULL)
            abort();
    size_t more = counted() - before;
    for (int i = 0; i < 64; i++)
        release(blocks[i]);
    return more;
}

static inline int expect(const char *what, size_t found, size_t least, size_t most)
{
    if (found >= least && found <= most)
        return 0;
    printf("%s: hakmem counts %zu bytes, expected %zu to %zu\n", what, found, least, most);
    return 1;
}

#define FOUR_MIB ((size_t)4 << 20)

#endif

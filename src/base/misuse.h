/* What a program can do wrong with a pointer, as lower layers report it to the slow path. */
#ifndef HAKMEM_BASE_MISUSE_H
#define HAKMEM_BASE_MISUSE_H

enum misuse {
    MISUSE_NONE,
    MISUSE_FOREIGN,   /* no block of ours begins there */
    MISUSE_UNALIGNED, /* no block of any allocator begins there */
    MISUSE_INTERIOR,  /* inside a block or between blocks */
    MISUSE_FREE,      /* a block that is free already */
    MISUSE_SIZE,      /* a block, freed with a size that it can't have */
    MISUSE_FUNCTION,  /* a block, freed by a function that is not for it */
    MISUSE_OVERRUN,   /* a block, and the bytes behind it are not as they were left */
    MISUSE_UNDERRUN,  /* a block, and the bytes in front of it are not as they were left */
    MISUSE_WRITTEN,   /* a free block, and it does not hold zeroes any more */
    MISUSE_USED,      /* the program touched a guarded block that is free, */
    MISUSE_BEYOND,    /* memory after one, */
    MISUSE_BEFORE,    /* or memory in front of one */
};

/* Which functions allocated a block, as far as it is noted (check_functions): one of C's; operator
 * new; operator new[]. */
enum maker { MAKER_MALLOC, MAKER_NEW, MAKER_NEW_ARRAY, MAKER_UNKNOWN };

/* The first thing found wrong while a batch was handled. */
struct finding {
    enum misuse what;
    void *where;
};

/* Keeps the first of two. */
static inline void finding_keep(struct finding *found, struct finding one)
{
    if (found->what == MISUSE_NONE)
        *found = one;
}

#endif

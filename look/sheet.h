/* What was found, as JSON. */
#ifndef HAKMEM_LOOK_SHEET_H
#define HAKMEM_LOOK_SHEET_H

#include "sheet/heap.h"

struct sheet {
    int pid;
    uint64_t before, after; /* resident bytes by the kernel's own sum; 0 where it does not say */
};

/* The caller frees it; null without memory. */
char *sheet_text(const struct target *t, const struct heap *heap, struct sheet sheet);

#endif

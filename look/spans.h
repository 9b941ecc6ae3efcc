/* A set of ranges of addresses that do not overlap: what was counted already. */
#ifndef HAKMEM_LOOK_SPANS_H
#define HAKMEM_LOOK_SPANS_H

#include <stdbool.h>
#include <stdint.h>

struct spans {
    void *root;
    bool no_memory; /* it could not hold one */
};

/* Adds [start, end), end > start; false where a byte of it is in the set. */
bool spans_add(struct spans *spans, uint64_t start, uint64_t end);

/* Whether a byte of [start, end) is in the set. */
bool spans_meet(const struct spans *spans, uint64_t start, uint64_t end);

void spans_release(struct spans *spans);

#endif

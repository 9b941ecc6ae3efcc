#define _GNU_SOURCE /* tdestroy */
#include "spans.h"

#include <search.h>
#include <stdlib.h>

struct span {
    uint64_t start, end;
};

/* Two that overlap are equal, so a tree holds none of them beside the other. */
static int compare(const void *a, const void *b)
{
    const struct span *left = a;
    const struct span *right = b;
    return left->end <= right->start ? -1 : left->start >= right->end;
}

bool spans_meet(const struct spans *spans, uint64_t start, uint64_t end)
{
    const struct span span = {start, end};
    return tfind(&span, &spans->root, compare) != NULL;
}

bool spans_add(struct spans *spans, uint64_t start, uint64_t end)
{
    struct span *span = malloc(sizeof *span);
    if (span == NULL) {
        spans->no_memory = true;
        return false;
    }
    *span = (struct span){start, end};
    struct span *const *found = tsearch(span, &spans->root, compare);
    if (found == NULL)
        spans->no_memory = true;
    if (found != NULL && *found == span)
        return true;
    free(span);
    return false;
}

void spans_release(struct spans *spans)
{
    tdestroy(spans->root, free);
    *spans = (struct spans){0};
}

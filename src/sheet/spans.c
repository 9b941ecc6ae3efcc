#include "sheet/spans.h"

#include <string.h>
#include <sys/auxv.h>

void spans_start(struct spans *spans, struct room *room)
{
    *spans = (struct spans){.room = room};
    const void *random = (const void *)getauxval(AT_RANDOM); /* 16 bytes of the kernel's */
    if (random != NULL)
        memcpy(&spans->chance, random, sizeof spans->chance);
}

bool spans_meet(const struct spans *spans, uint64_t start, uint64_t end)
{
    for (const struct span *span = spans->root; span != NULL;
         span = end <= span->start ? span->left : span->right)
        if (start < span->end && end > span->start)
            return true;
    return false;
}

static uint64_t drawn(struct spans *spans)
{
    spans->chance = spans->chance * 6364136223846793005u + 1442695040888963407u;
    return spans->chance >> 16;
}

/* Takes a tree apart: what lies below the address, and the rest. */
static void split(struct span *tree, uint64_t at, struct span **below, struct span **rest)
{
    while (tree != NULL)
        if (tree->start < at) {
            *below = tree;
            below = &tree->right;
            tree = tree->right;
        } else {
            *rest = tree;
            rest = &tree->left;
            tree = tree->left;
        }
    *below = NULL;
    *rest = NULL;
}

bool spans_add(struct spans *spans, uint64_t start, uint64_t end, uint32_t number)
{
    if (end <= start || spans_meet(spans, start, end))
        return false;
    struct span *span = room_get(spans->room, sizeof *span);
    if (span == NULL)
        return false;
    *span = (struct span){start, end, number, drawn(spans), NULL, NULL};
    struct span **to = &spans->root;
    while (*to != NULL && (*to)->rank >= span->rank)
        to = start < (*to)->start ? &(*to)->left : &(*to)->right;
    split(*to, start, &span->left, &span->right);
    *to = span;
    return true;
}

const struct span *spans_from(const struct spans *spans, uint64_t at)
{
    const struct span *first = NULL;
    for (const struct span *span = spans->root; span != NULL;)
        if (span->start >= at) {
            first = span;
            span = span->left;
        } else {
            span = span->right;
        }
    return first;
}

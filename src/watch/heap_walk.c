#include "watch/heap_walk.h"

void check_break(struct check_walk *walk, enum check_rule rule, const void *where, size_t expected,
                 size_t found)
{
    struct accounts *accounts = walk->accounts;
    accounts->broken[rule]++;
    if (accounts->breaches < CHECK_BREACHES_KEPT)
        accounts->first[accounts->breaches] = (struct check_breach){rule, where, expected, found};
    accounts->breaches++;
}

/* The number of the first superslab at p or above. */
static size_t superslab_at(const struct check_walk *walk, const void *p)
{
    size_t low = 0, high = walk->superslab_count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if ((uintptr_t)walk->superslabs[middle].s->base < (uintptr_t)p)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct check_superslab *check_find(const struct check_walk *walk, const void *p)
{
    const char *base = (const char *)((uintptr_t)p & ~(SUPERSLAB - 1));
    size_t i = superslab_at(walk, base);
    return i < walk->superslab_count && walk->superslabs[i].s->base == base ? &walk->superslabs[i]
                                                                            : NULL;
}

void check_add_superslab(struct check_walk *walk, struct superslab *s)
{
    size_t i = superslab_at(walk, s->base);
    bool known = i < walk->superslab_count && walk->superslabs[i].s->base == s->base;
    if (known || walk->superslab_count == walk->superslab_room)
        return;
    for (size_t at = walk->superslab_count; at > i; at--) {
        walk->superslabs[at] = walk->superslabs[at - 1];
        FORGET(at); /* or it becomes a call of memmove, with every lock held */
    }
    walk->superslabs[i] = (struct check_superslab){.s = s};
    walk->superslab_count++;
}

/* From above: mostly they come by address. */
void check_add_range(struct check_walk *walk, const void *start, size_t length)
{
    if (walk->range_count == walk->range_room)
        return;
    size_t i = walk->range_count++;
    for (; i > 0 && walk->ranges[i - 1].start > (uintptr_t)start; i--)
        walk->ranges[i] = walk->ranges[i - 1];
    walk->ranges[i] = (struct check_range){(uintptr_t)start, (uintptr_t)start + length};
}

void check_ranges(struct check_walk *walk)
{
    for (size_t i = 1; i < walk->range_count; i++)
        if (walk->ranges[i].start < walk->ranges[i - 1].end)
            check_break(walk, CHECK_RANGES_OVERLAP, (void *)walk->ranges[i].start,
                        walk->ranges[i - 1].end, walk->ranges[i].start);
}

#include "sheet/totals.h"

#include <string.h>

const char kind_names[KINDS][12] = {
    [KIND_HEAP] = "heap",
    [KIND_FILE] = "file",
    [KIND_STACK] = "stack",
    [KIND_ANONYMOUS] = "anonymous",
};

/* A thread's stack has no name: it is what lies on a mapping without access, its guard. */
enum kind mapping_kind(const struct target *t, const struct mapping *m)
{
    const struct mapping *before = m > t->maps ? m - 1 : NULL;
    bool on_guard = before != NULL && before->end == m->start && !before->readable &&
                    !before->writable && !before->executable;
    if (m->heap)
        return KIND_HEAP;
    if (m->file)
        return KIND_FILE;
    if (strstr(m->name, "stack") != NULL || (*m->name == 0 && m->writable && on_guard))
        return KIND_STACK;
    return KIND_ANONYMOUS;
}

struct totals totals_of(const struct target *t, const struct heap *heap)
{
    static const enum heap_line can_go[] = {LINE_FREE_PAGES, LINE_TRANSFER, LINE_SLICES,
                                            LINE_HUGE_PAGES, LINE_KEPT};
    struct totals totals = {0};
    for (size_t i = 0; i < t->map_count; i++) {
        const struct mapping *m = &t->maps[i];
        enum kind kind = mapping_kind(t, m);
        totals.resident += m->rss;
        uint64_t ours = m->swapped < m->claimed_swapped ? m->swapped : m->claimed_swapped;
        totals.swapped[0] += ours;
        totals.swapped[1] += m->swapped - ours;
        if (kind == KIND_HEAP)
            totals.unexplained += (int64_t)m->rss - (int64_t)m->claimed;
        else
            totals.kinds[kind] += m->rss - m->claimed;
    }
    for (unsigned i = 0; i < sizeof can_go / sizeof *can_go; i++)
        totals.returnable += heap->resident[can_go[i]];
    return totals;
}

uint64_t little_of(const struct target *t)
{
    uint64_t resident = 0;
    for (size_t i = 0; i < t->map_count; i++)
        resident += t->maps[i].rss;
    return resident / 100;
}

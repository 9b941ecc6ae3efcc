#include "sheet/look.h"

#define NODES_MOST 4000000

/* Only there all of a mapping is ours: elsewhere the kernel may have joined it to another's. */
static bool is_heap(const struct look *look, const struct mapping *m)
{
    const struct watch_map *w = &look->heap->tables.map;
    return m->start - w->window_base < w->superslabs_bytes;
}

uint64_t claim(struct look *look, uint64_t start, uint64_t bytes, uint8_t *present)
{
    uint8_t some[256];
    uint64_t resident = 0;
    struct mapping *m = NULL;
    for (uint64_t at = start - start % PAGE, end = start + bytes; at < end;) {
        size_t n = (size_t)((end - at + PAGE - 1) / PAGE);
        n = n < sizeof some ? n : sizeof some;
        target_presence(look->t, at, n, some);
        for (size_t i = 0; i < n; i++, at += PAGE) {
            if (m == NULL || at >= m->end || at < m->start)
                m = target_mapping(look->t, at);
            if (m != NULL) {
                m->heap |= is_heap(look, m);
                m->claimed_swapped += some[i] == SWAPPED ? PAGE : 0;
            }
            some[i] = m != NULL && some[i] == RESIDENT;
            if (some[i]) {
                m->claimed += PAGE;
                resident++;
            }
        }
        if (present != NULL) {
            memcpy(present, some, n);
            present += n;
        }
    }
    return resident;
}

void list_walk(struct look *look, uint64_t head, uint32_t next_at,
               bool (*member)(struct look *, uint64_t node))
{
    uint64_t node = 0;
    uint64_t remembered = head;
    if (!target_read(look->t, head, &node, sizeof node))
        return; /* no member was ever there */
    for (uint64_t n = 1; node != 0 && node != head && node != remembered && n < NODES_MOST; n++) {
        uint64_t next = 0;
        if (!target_read(look->t, node + next_at, &next, sizeof next) || !member(look, node)) {
            look->heap->skipped++;
            return;
        }
        if ((n & (n - 1)) == 0)
            remembered = node;
        node = next;
    }
}

#include "sheet/target.h"

#include <string.h>

#include "base/text.h"

/* Pages that were read: descriptors lie close to each other. And the presence of pages in some
 * chunks of address space: a heap is walked in the order of addresses. */
#define PAGES_KEPT 1024
#define CHUNK_PAGES 1024
#define CHUNK ((uint64_t)CHUNK_PAGES * PAGE)
#define CHUNKS_KEPT 64
#define NONE UINT64_MAX

/* Steps; some for each page that is resident. */
#define BUDGET_LEAST 4000000u
#define BUDGET_OF_PAGE 32

/* The addresses apart, so that no memory is touched for what is not read. */
struct kept {
    uint64_t pages[PAGES_KEPT], chunks[CHUNKS_KEPT];
    unsigned char bytes[PAGES_KEPT][PAGE];
    uint8_t present[CHUNKS_KEPT][CHUNK_PAGES];
};

bool target_begin(struct target *t)
{
    if (t->kept == NULL)
        t->kept = room_get(&t->room, sizeof *t->kept);
    if (t->scratch == NULL)
        t->scratch = room_get(&t->room, SCRATCH);
    if (t->kept == NULL || t->scratch == NULL)
        return false;
    for (size_t i = 0; i < PAGES_KEPT; i++)
        t->kept->pages[i] = NONE;
    for (size_t i = 0; i < CHUNKS_KEPT; i++)
        t->kept->chunks[i] = NONE;
    return true;
}

void target_allow(struct target *t)
{
    t->budget = BUDGET_LEAST;
    for (size_t i = 0; i < t->map_count; i++)
        t->budget += BUDGET_OF_PAGE * (t->maps[i].rss / PAGE);
}

void target_forget(struct target *t)
{
    room_release(&t->room);
    t->maps = NULL;
    t->map_count = t->map_most = 0;
    t->kept = NULL;
    t->scratch = NULL;
}

bool mapping_rename(struct target *t, struct mapping *m, const char *name)
{
    size_t bytes = strlen(name) + 1;
    char *copy = room_get(&t->room, bytes);
    if (copy != NULL)
        m->name = memcpy(copy, name, bytes);
    return copy != NULL;
}

struct mapping *target_add(struct target *t, const char *name)
{
    struct mapping *more =
        room_grown(&t->room, t->maps, t->map_count, &t->map_most, sizeof *t->maps);
    if (more == NULL)
        return NULL;
    t->maps = more;
    struct mapping *m = &t->maps[t->map_count];
    *m = (struct mapping){0};
    if (!mapping_rename(t, m, name))
        return NULL;
    t->map_count++;
    return m;
}

bool target_spend(struct target *t)
{
    if (t->budget == 0)
        return false;
    t->budget--;
    return true;
}

static const uint8_t *chunk_at(struct target *t, uint64_t address)
{
    size_t i = address / CHUNK % CHUNKS_KEPT;
    struct kept *kept = t->kept;
    if (kept->chunks[i] != address) {
        memset(kept->present[i], 0, sizeof kept->present[i]);
        if (target_spend(t))
            t->presence(t, address, CHUNK_PAGES, kept->present[i]);
        kept->chunks[i] = address;
    }
    return kept->present[i];
}

void target_presence(struct target *t, uint64_t page, size_t n, uint8_t *present)
{
    while (n > 0) {
        uint64_t start = page - page % CHUNK;
        size_t from = (size_t)(page - start) / PAGE;
        size_t some = CHUNK_PAGES - from < n ? CHUNK_PAGES - from : n;
        memcpy(present, chunk_at(t, start) + from, some);
        present += some;
        page += some * PAGE;
        n -= some;
    }
}

static const unsigned char *page_at(struct target *t, uint64_t address)
{
    size_t i = address / PAGE % PAGES_KEPT;
    struct kept *kept = t->kept;
    if (kept->pages[i] == address)
        return kept->bytes[i];
    uint8_t there;
    target_presence(t, address, 1, &there);
    const struct mapping *m = there ? NULL : target_mapping(t, address);
    if ((!there && (m == NULL || !m->file)) || !target_spend(t))
        return NULL;
    kept->pages[i] = NONE;
    if (!t->read_page(t, address, kept->bytes[i]))
        return NULL;
    kept->pages[i] = address;
    return kept->bytes[i];
}

bool target_read(struct target *t, uint64_t at, void *to, size_t bytes)
{
    unsigned char *out = to;
    if (at > UINT64_MAX - CHUNK - bytes)
        return false;
    while (bytes > 0) {
        size_t from = at % PAGE;
        size_t n = PAGE - from < bytes ? PAGE - from : bytes;
        const unsigned char *page = page_at(t, at - from);
        if (page == NULL)
            return false;
        memcpy(out, page + from, n);
        out += n;
        at += n;
        bytes -= n;
    }
    return true;
}

struct mapping *target_mapping(const struct target *t, uint64_t at)
{
    size_t low = 0, high = t->map_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (at >= t->maps[middle].end)
            low = middle + 1;
        else
            high = middle;
    }
    return low < t->map_count && at >= t->maps[low].start ? &t->maps[low] : NULL;
}

bool target_mapped(const struct target *t, uint64_t at, uint64_t bytes)
{
    uint64_t end = at + bytes;
    if (end < at)
        return false;
    const struct mapping *m = target_mapping(t, at);
    for (const struct mapping *last = t->maps + t->map_count; m != NULL && m < last; m++) {
        if (m->start > at)
            return false;
        if (m->end >= end)
            return true;
        at = m->end;
    }
    return false;
}

bool why_set(struct why *why, enum ending ending, const char *line)
{
    struct text t;
    text_init(&t, why->line, sizeof why->line);
    text_add(&t, line);
    why->ending = ending;
    return false;
}

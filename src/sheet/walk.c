/* The order: threads' caches, so that it is known which blocks are free in them; then all mapped
 * memory by its addresses, slab by slab; then what no entry of the map names: free slices, kept
 * mappings, metadata. No page is counted twice. */
#include "sheet/heap.h"

#include <elf.h>
#include <string.h>

#include "sheet/look.h"

#define SEGMENTS_MOST 64
#define SKIPPED_LITTLE 100 /* more than so many, and than what made sense, are nonsense */

/* ---- what is resident ---- */

/* All of a mapping's or an array's resident pages belong to one line. */
static void count_whole(struct look *look, uint64_t start, uint64_t bytes, enum heap_line line)
{
    count(look, NULL, line, claim(look, start, bytes, NULL) * PAGE);
}

/* ---- huge blocks ---- */

/* One that is in use, or kept. */
static void huge_count(struct look *look, uint64_t at, bool in_use)
{
    const struct watch_huge *w = &look->heap->tables.huge;
    unsigned char *huge = look->descriptor;
    bool read = target_read(look->t, at, huge, w->size);
    uint64_t base = word_at(huge, w->base_at);
    uint64_t length = word_at(huge, w->length_at);
    uint64_t usable = word_at(huge, w->usable_at);
    if (!read || base % PAGE != 0 || length == 0 || !target_mapped(look->t, base, length) ||
        usable > length || !count_once(look, base, base + length)) {
        look->heap->skipped++;
        return;
    }
    if (!in_use) {
        count_whole(look, base, length, LINE_KEPT);
        return;
    }
    look->heap->huge_blocks++;
    look->found++;
    look->heap->huge_bytes += usable;
    look->heap->live_bytes += usable;
    heard(look, base, usable);
    uint64_t used = (usable + PAGE - 1) / PAGE * PAGE;
    used = used < length ? used : length;
    count_whole(look, base, used, LINE_LIVE);
    count_whole(look, base + used, length - used, LINE_ROUNDING);
}

/* ---- the map ---- */

/* 0 where there is none. */
static uint64_t leaf_at(struct look *look, uint64_t region)
{
    const struct watch_map *w = &look->heap->tables.map;
    uint64_t at = address(w->root) + region / w->middle_entries * WORD;
    if (!target_read(look->t, at, &at, sizeof at) || at == 0)
        return 0;
    at += region % w->middle_entries * WORD;
    return target_read(look->t, at, &at, sizeof at) ? at : 0;
}

static unsigned bin_at(struct look *look, uint64_t leaf, uint64_t slice)
{
    const struct watch_map *w = &look->heap->tables.map;
    uint64_t in_window = slice - w->window_base;
    uint64_t number = in_window >> w->slice_bits;
    uint64_t at;
    if (slice >= w->window_base && number < w->window_slices)
        at = address(w->window_bins) + number * sizeof(uint16_t);
    else
        at = leaf + w->bins_at +
             (slice >> w->slice_bits) % ((uint64_t)1 << (w->leaf_bits - w->slice_bits)) *
                 sizeof(uint16_t);
    uint16_t offset = 0;
    return target_read(look->t, at, &offset, sizeof offset) ? offset / w->bin_bytes : 0;
}

static void entry_count(struct look *look, uint64_t leaf, uint64_t slice, uint64_t owner)
{
    const struct watch_map *w = &look->heap->tables.map;
    unsigned bin = bin_at(look, leaf, slice);
    if (bin == w->bin_huge) {
        huge_count(look, owner, true);
    } else if (bin >= w->bin_whole) {
        if (spans_meet(&look->seen, slice, slice + 1))
            return; /* a further slice of a slab */
        if (slab_count(look, owner, slice, bin == w->bin_whole_free))
            look->found++;
        else
            look->heap->skipped++;
    }
}

/* The slices of one mapping. Where a page of a leaf is absent, none of its entries was ever set. */
static bool mapping_walk(struct look *look, const struct mapping *m)
{
    const struct watch_map *w = &look->heap->tables.map;
    uint64_t slice_bytes = (uint64_t)1 << w->slice_bits;
    uint64_t slices = (uint64_t)1 << (w->leaf_bits - w->slice_bits);
    uint64_t at = m->start & ~(slice_bytes - 1);
    at = at > look->walked ? at : look->walked; /* two mappings may meet in a slice */
    while (at < m->end && look->t->budget > 0) {
        uint64_t region = at >> w->leaf_bits;
        if (region / w->middle_entries >= w->root_entries)
            break; /* the map has no room for it */
        uint64_t next = (region + 1) << w->leaf_bits;
        uint64_t leaf = leaf_at(look, region);
        if (leaf == 0) {
            at = next;
            continue;
        }
        uint64_t in_page = PAGE / WORD - (at >> w->slice_bits) % slices % (PAGE / WORD);
        uint64_t from = leaf + w->owners_at + (at >> w->slice_bits) % slices * WORD;
        if (!target_read(look->t, from, look->words, (size_t)in_page * WORD)) {
            at += in_page * slice_bytes;
            continue;
        }
        for (uint64_t i = 0; i < in_page && at < m->end && look->t->budget > 0;
             i++, at += slice_bytes)
            if (look->words[i] != 0)
                entry_count(look, leaf, at, look->words[i]);
    }
    look->walked = at;
    return look->t->budget > 0;
}

/* ---- what no entry of the map names ---- */

static void superslab_count(struct look *look, uint64_t at)
{
    const struct watch_superslabs *w = &look->heap->tables.superslabs;
    uint64_t slice = (uint64_t)1 << look->heap->tables.map.slice_bits;
    unsigned char *s = look->descriptor;
    if (!target_read(look->t, at, s, w->size)) {
        look->heap->skipped++;
        return;
    }
    uint64_t base = word_at(s, w->base_at);
    uint64_t free = word_at(s, w->free_at);
    uint64_t touched = word_at(s, w->touched_at);
    unsigned slices = s[w->slices_at];
    if (slices == 0 || slices > 64 || !target_mapped(look->t, base, slices * slice)) {
        look->heap->skipped++;
        return;
    }
    look->heap->superslabs++;
    look->found++;
    for (unsigned i = 0; i < slices; i++) {
        uint64_t start = base + i * slice;
        if ((free >> i & 1) != 0 && count_once(look, start, start + slice))
            count_whole(look, start, slice, touched >> i & 1 ? LINE_SLICES : LINE_HUGE_PAGES);
    }
}

static bool superslab_note(struct look *look, uint64_t node)
{
    uint64_t at = node - look->heap->tables.superslabs.node_at;
    spans_add(&look->homes, at, at + 1, 0);
    return true;
}

static void superslabs_read(struct look *look)
{
    const struct watch_superslabs *w = &look->heap->tables.superslabs;
    for (unsigned i = 0; i < w->lists; i++)
        list_walk(look, address(w->by_longest) + i * 2 * WORD, 0, superslab_note);
    list_walk(look, address(w->dense), 0, superslab_note);
    for (const struct span *home = spans_from(&look->homes, 0); home != NULL;
         home = spans_from(&look->homes, home->end))
        superslab_count(look, home->start);
}

static bool kept_count(struct look *look, uint64_t node)
{
    huge_count(look, node - look->heap->tables.huge.node_at, false);
    return true;
}

static bool metadata_count(struct look *look, uint64_t at)
{
    uint64_t length = 0;
    if (!target_read(look->t, at + look->heap->tables.meta.length_at, &length, sizeof length) ||
        length == 0 || !target_mapped(look->t, at, length) || !count_once(look, at, at + length))
        return false;
    count_whole(look, at, length, LINE_METADATA);
    return true;
}

/* Where the memory of a file ends that is mapped from its start there, by its own headers; 0 where
 * they make no sense. The kernel may have joined what follows to it. */
static uint64_t file_end(struct look *look, uint64_t start)
{
    Elf64_Ehdr elf;
    uint64_t first = UINT64_MAX;
    uint64_t end = 0;
    if (!target_read(look->t, start, &elf, sizeof elf) ||
        memcmp(elf.e_ident, ELFMAG, SELFMAG) != 0 || elf.e_phentsize != sizeof(Elf64_Phdr))
        return 0;
    for (unsigned i = 0; i < elf.e_phnum && i < SEGMENTS_MOST; i++) {
        Elf64_Phdr p;
        if (!target_read(look->t, start + elf.e_phoff + i * sizeof p, &p, sizeof p))
            return 0;
        if (p.p_type != PT_LOAD)
            continue;
        first = p.p_vaddr < first ? p.p_vaddr : first;
        end = p.p_vaddr + p.p_memsz > end ? p.p_vaddr + p.p_memsz : end;
    }
    return end > first ? (start + (end - first) + PAGE - 1) / PAGE * PAGE : 0;
}

/* The library itself. Its large tables are in any case ours, and all of it if it is a file of its
 * own. */
static void library_read(struct look *look)
{
    const struct watch_map *map = &look->heap->tables.map;
    const struct mapping *library = target_mapping(look->t, look->heap->tables.at);
    const char *name = library != NULL ? library->name : "";
    const char *file = strrchr(name, '/');
    bool own = file != NULL && strncmp(file, "/libhakmem", strlen("/libhakmem")) == 0;
    const struct mapping *before = NULL;
    uint64_t last = 0;
    for (size_t i = 0; own && i < look->t->map_count; i++) {
        const struct mapping *m = &look->t->maps[i];
        bool behind = before != NULL && before->end == m->start && !m->file && *m->name == 0;
        before = strcmp(m->name, name) == 0 ? m : NULL;
        if (before != NULL && m->offset == 0)
            last = file_end(look, m->start);
        uint64_t end = behind && last > m->start && last < m->end ? last : m->end;
        if ((before != NULL || behind) && count_once(look, m->start, end))
            count_whole(look, m->start, end - m->start, LINE_METADATA);
    }
    const struct {
        uint64_t start, bytes;
    } tables[] = {
        {address(map->root), map->root_entries * (uint64_t)WORD},
        {address(map->window_bins), map->window_slices * sizeof(uint16_t)},
    };
    for (unsigned i = 0; i < 2; i++) {
        uint64_t start = tables[i].start & ~(uint64_t)(PAGE - 1);
        uint64_t end = tables[i].start + tables[i].bytes;
        if (end > start && target_mapped(look->t, start, end - start) &&
            count_once(look, start, end))
            count_whole(look, start, end - start, LINE_METADATA);
    }
}

static void counters_read(struct look *look)
{
    const struct watch_counters *w = &look->heap->tables.counters;
    const uint32_t freed[] = {w->freed_at, w->freed_slices_at, w->freed_huge_at};
    const uint32_t kinds[] = {w->pages_at, w->slices_at, w->huge_at};
    for (unsigned i = 0; i < 3; i++) {
        uint64_t bytes = 0;
        uint64_t two[2] = {0, 0};
        target_read(look->t, address(w->first) + freed[i], &bytes, sizeof bytes);
        target_read(look->t, address(w->first) + kinds[i], two, sizeof two);
        look->heap->freed += bytes;
        look->heap->returned += two[0];
        look->heap->taken_again += two[1];
    }
}

static void limits_read(struct look *look)
{
    const struct watch_limits *w = &look->heap->tables.limits;
#define LIMIT(limit, name, words) w->name,
    const void *const limits[] = {HEAP_LIMITS(LIMIT)};
#undef LIMIT
    target_read(look->t, address(w->held), &look->heap->held, sizeof look->heap->held);
    for (unsigned i = 0; i < HEAP_LIMIT_COUNT; i++) {
        uint64_t bytes = UINT64_MAX;
        bool known = target_read(look->t, address(limits[i]), &bytes, sizeof bytes);
        look->heap->limits[i] = known ? bytes : UINT64_MAX;
    }
}

static void requested_read(struct look *look)
{
    uint64_t at = address(look->heap->tables.profile.fill);
    struct fill fill;
    if (at != 0 && target_read(look->t, at, &fill, sizeof fill))
        look->heap->requested = requested_from(&fill);
}

static bool classes_read(struct look *look)
{
    const struct watch_slabs *w = &look->heap->tables.slabs;
    for (unsigned cls = 0; cls < w->classes; cls++) {
        unsigned char row[256];
        struct class_sum *sum = &look->heap->classes[cls];
        if (!target_read(look->t, address(w->table) + (uint64_t)cls * w->class_bytes, row,
                         w->class_bytes))
            return false;
        *sum = (struct class_sum){.size = half_at(row, w->size_at),
                                  .blocks = quarter_at(row, w->blocks_at),
                                  .slices = row[w->slices_at]};
        if (sum->size == 0 || sum->blocks > SLAB_BLOCKS_MOST || sum->slices > SLAB_SLICES_MOST ||
            look->heap->tables.map.slice_bits > SLICE_BITS_MOST)
            return false;
    }
    return true;
}

/* False where it makes no sense. */
static bool look_read(struct look *look)
{
    struct target *t = look->t;
    const struct tables *tables = &look->heap->tables;
    if (!classes_read(look))
        return false;
    caches_read(look);
    for (size_t i = 0; i < t->map_count && !t->room.short_of; i++)
        if ((t->maps[i].writable || t->maps[i].readable) && !mapping_walk(look, &t->maps[i]))
            return false;
    superslabs_read(look);
    list_walk(look, address(tables->huge.dirty), 0, kept_count);
    list_walk(look, address(tables->meta.first), tables->meta.next_at, metadata_count);
    library_read(look);
    counters_read(look);
    limits_read(look);
    requested_read(look);
    look->heap->mark_count = marks_read(t, tables, look->heap->marks);
    return t->budget > 0 &&
           (look->heap->skipped <= SKIPPED_LITTLE || look->heap->skipped <= look->found);
}

bool heap_read(struct target *t, struct heap *heap, struct why *why)
{
    struct look *look = room_get(&t->room, sizeof *look);
    struct tables tables = heap->tables;
    struct heap_listener *listener = heap->listener;
    memset(heap, 0, sizeof *heap);
    heap->tables = tables;
    heap->listener = listener;
    bool sense = false;
    if (look != NULL) {
        look->t = t;
        look->heap = heap;
        spans_start(&look->seen, &t->room);
        spans_start(&look->homes, &t->room);
        spans_start(&look->cached, &t->room);
        heap->seen = &look->seen;
        sense = look_read(look);
    }
    if (t->room.short_of)
        return why_set(why, EXIT_TARGET, "out of memory while reading so large a heap");
    if (!sense)
        return why_set(why, EXIT_NONSENSE,
                       "its description of the heap is invalid: the memory is corrupt, or forged");
    return true;
}

/* ---- what a look adds up to ---- */

const char kind_names[KINDS][12] = {
    [KIND_HEAP] = "heap",
    [KIND_FILE] = "file",
    [KIND_STACK] = "stack",
    [KIND_ANONYMOUS] = "anonymous",
};

/* A thread's stack has no name: it is what lies on a mapping without access, its guard. That is
 * small: below a heap, such as that of Go, lies what is reserved for it. */
#define GUARD_MOST ((uint64_t)1 << 20)

enum mapping_kind mapping_kind(const struct target *t, const struct mapping *m)
{
    const struct mapping *before = m > t->maps ? m - 1 : NULL;
    bool on_guard = before != NULL && before->end == m->start && !before->readable &&
                    !before->writable && !before->executable &&
                    before->end - before->start <= GUARD_MOST;
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
        enum mapping_kind kind = mapping_kind(t, m);
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

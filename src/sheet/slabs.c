#include "sheet/look.h"

/* Reads the slab at its descriptor's address; false where that is none, or of another address. */
static bool slab_read(struct look *look, uint64_t at, uint64_t slice, struct slab *slab)
{
    const struct watch_slabs *w = &look->heap->tables.slabs;
    unsigned char *head = look->descriptor;
    if (!target_read(look->t, at, head, w->slab_bytes))
        return false;
    slab->base = word_at(head, w->base_at);
    slab->cls = head[w->cls_at];
    slab->usable = half_at(head, w->usable_at);
    slab->places = quarter_at(head, w->places_at);
    if (slab->base != slice || slab->cls >= w->classes)
        return false;
    const struct class_sum *sum = &look->heap->classes[slab->cls];
    slab->size = sum->size;
    slab->blocks = sum->blocks;
    slab->bytes = (uint64_t)sum->slices << look->heap->tables.map.slice_bits;
    if (slab->blocks == 0 || (uint64_t)slab->blocks * slab->size > slab->bytes ||
        !target_mapped(look->t, slab->base, slab->bytes))
        return false;
    uint64_t home = word_at(head, w->home_at);
    spans_add(&look->homes, home, home + 1, 0);
    return target_read(look->t, at + w->words_at, slab->words,
                       (slab->blocks + 63) / 64 * sizeof *slab->words);
}

/* Counts a block that is taken by its bit, and says of which line it is: the program may use so
 * many bytes of it, or it is free in a cache. `cached` is the first of those there or above. */
static enum heap_line block_count(struct look *look, struct class_sum *sum,
                                  const struct span *cached, uint64_t start, uint64_t usable)
{
    if (cached == NULL || cached->start != start) {
        sum->live++;
        look->heap->live_bytes += usable;
        heard(look, start, usable);
        return LINE_LIVE;
    }
    if (cached->number == IN_TRANSFER) {
        sum->in_transfer++;
        return LINE_TRANSFER;
    }
    look->heap->caches[cached->number].blocks++;
    look->heap->caches[cached->number].bytes += sum->size;
    sum->cached++;
    return LINE_CACHES;
}

/* One block of whole slices: what the program may use of it, and the end. */
static void whole_count(struct look *look, struct class_sum *sum, const struct slab *slab)
{
    const struct span *cached = spans_from(&look->cached, slab->base);
    uint64_t used = slab->usable != 0 && slab->usable < slab->bytes ? slab->usable : slab->bytes;
    enum heap_line line = LINE_CACHES;
    if (slab->free_whole && (cached == NULL || cached->start != slab->base))
        sum->cached++; /* on its way to one */
    else
        line = block_count(look, sum, cached, slab->base, used);
    for (uint64_t page = 0; page * PAGE < slab->bytes; page++)
        if (slab->present[page])
            count(look, sum, line != LINE_LIVE || page * PAGE < used ? line : LINE_ROUNDING, PAGE);
}

/* Of the bytes [from, to) of a slab, those that are resident, in pages that are wanted or not. */
static uint64_t resident_in(const struct slab *slab, int wanted, uint64_t from, uint64_t to)
{
    uint64_t sum = 0;
    while (from < to) {
        uint64_t page = from / PAGE;
        uint64_t end = (page + 1) * PAGE < to ? (page + 1) * PAGE : to;
        if (slab->present[page] && (wanted < 0 || slab->used[page] == wanted))
            sum += end - from;
        from = end;
    }
    return sum;
}

/* A block is taken. */
static void pages_use(struct slab *slab, uint64_t from, uint64_t to)
{
    while (from < to) {
        uint64_t page = from / PAGE;
        uint64_t end = (page + 1) * PAGE < to ? (page + 1) * PAGE : to;
        slab->used[page] = 1;
        slab->taken[page] += (uint16_t)(end - from);
        from = end;
    }
}

static bool is_sparse(const struct slab *slab, uint64_t page)
{
    return slab->present[page] && slab->used[page] && slab->taken[page] <= PAGE / 2;
}

/* Pages that can't go back, for the sake of few blocks. */
static void sparse_count(struct class_sum *sum, const struct slab *slab)
{
    for (uint64_t page = 0; page * PAGE < slab->bytes; page++)
        if (is_sparse(slab, page)) {
            sum->sparse_pages++;
            sum->sparse_used += slab->taken[page];
        }
    for (unsigned k = 0; k < slab->blocks; k++) {
        uint64_t from = (uint64_t)k * slab->size;
        uint64_t last = (from + slab->size - 1) / PAGE;
        bool sparse = false;
        for (uint64_t page = from / PAGE; page <= last && !sparse; page++)
            sparse = is_sparse(slab, page);
        sum->sparse_live += sparse && (slab->live[k / 64] >> k % 64 & 1) != 0;
    }
}

static void blocks_count(struct look *look, struct class_sum *sum, struct slab *slab)
{
    memset(slab->used, 0, sizeof slab->used);
    memset(slab->taken, 0, sizeof slab->taken);
    memset(slab->live, 0, sizeof slab->live);
    const struct span *cached = spans_from(&look->cached, slab->base);
    uint32_t free = slab->places;
    for (unsigned k = 0; k < slab->blocks; k++) {
        if (slab->words[k / 64] >> k % 64 & 1)
            continue;
        free -= free > 0;
        uint64_t from = (uint64_t)k * slab->size;
        uint64_t to = from + slab->size;
        pages_use(slab, from, to);
        while (cached != NULL && cached->start < slab->base + from)
            cached = spans_from(&look->cached, cached->end);
        enum heap_line line = block_count(look, sum, cached, slab->base + from, slab->size);
        slab->live[k / 64] |= (uint64_t)(line == LINE_LIVE) << k % 64;
        count(look, sum, line, resident_in(slab, -1, from, to));
    }
    sum->free += free;
    look->heap->free_bytes += (uint64_t)free * slab->size;
    for (unsigned k = 0; k < slab->blocks; k++) {
        if ((slab->words[k / 64] >> k % 64 & 1) == 0)
            continue;
        uint64_t from = (uint64_t)k * slab->size;
        uint64_t to = from + slab->size;
        count(look, sum, LINE_HOLES, resident_in(slab, 1, from, to));
        count(look, sum, LINE_FREE_PAGES, resident_in(slab, 0, from, to));
    }
    sparse_count(sum, slab);
    uint64_t end = (uint64_t)slab->blocks * slab->size;
    count(look, sum, LINE_ROUNDING, resident_in(slab, 1, end, slab->bytes));
    count(look, sum, LINE_FREE_PAGES, resident_in(slab, 0, end, slab->bytes));
}

bool slab_count(struct look *look, uint64_t at, uint64_t slice, bool free_whole)
{
    struct slab *slab = &look->slab;
    slab->free_whole = free_whole;
    if (!slab_read(look, at, slice, slab) ||
        !count_once(look, slab->base, slab->base + slab->bytes))
        return false;
    struct class_sum *sum = &look->heap->classes[slab->cls];
    claim(look, slab->base, slab->bytes, slab->present);
    sum->slabs++;
    if (slab->blocks == 1)
        whole_count(look, sum, slab);
    else
        blocks_count(look, sum, slab);
    return true;
}

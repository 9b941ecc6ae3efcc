/* The order: threads' caches, so that it is known which blocks are free in them; then all mapped
 * memory by its addresses, slab by slab; then what no entry of the map names: free slices, kept
 * mappings, metadata. No page is counted twice. */
#include "heap.h"

#include <stdlib.h>
#include <string.h>

#include "spans.h"
#include "why.h"

#define WORD 8
#define CACHES_MOST 100000
#define REGIONS_MOST 100000
#define NODES_MOST 4000000
#define SLAB_SLICES_MOST 64
#define SLAB_BLOCKS_MOST 8192

static uint64_t address(const void *p) { return (uint64_t)(uintptr_t)p; }

static uint64_t word_at(const void *from, uint32_t at)
{
    uint64_t word;
    memcpy(&word, (const char *)from + at, sizeof word);
    return word;
}

static uint32_t half_at(const void *from, uint32_t at)
{
    uint32_t half;
    memcpy(&half, (const char *)from + at, sizeof half);
    return half;
}

static uint16_t quarter_at(const void *from, uint32_t at)
{
    uint16_t quarter;
    memcpy(&quarter, (const char *)from + at, sizeof quarter);
    return quarter;
}

/* ---- blocks that are free in caches ---- */

struct cached {
    uint64_t block;
    uint32_t cache; /* its number, or IN_TRANSFER */
};
#define IN_TRANSFER UINT32_MAX

struct span {
    uint64_t start, bytes;
};

struct look {
    struct target *t;
    struct heap *heap;
    struct cached *cached; /* by address, once all are read */
    size_t cached_count, cached_room;
    struct spans seen; /* memory that was counted */
    uint64_t *homes;   /* superslabs' descriptors, perhaps more than once */
    size_t home_count, home_room;
    bool in_file; /* what is being counted lies in a file's mapping, or behind it */
    bool no_memory;
};

/* Room for one more in an array that grows; null without memory. */
static void *grown(struct look *look, void *array, size_t count, size_t *room, size_t each)
{
    if (count < *room)
        return array;
    size_t more = *room == 0 ? 1024 : 2 * *room;
    void *to = realloc(array, more * each);
    if (to != NULL)
        *room = more;
    else
        look->no_memory = true;
    return to;
}

static void cached_add(struct look *look, uint64_t block, uint32_t cache)
{
    struct cached *to =
        grown(look, look->cached, look->cached_count, &look->cached_room, sizeof *look->cached);
    if (to == NULL)
        return;
    look->cached = to;
    look->cached[look->cached_count++] = (struct cached){block, cache};
}

static void home_note(struct look *look, uint64_t at)
{
    if (look->home_count > 0 && look->homes[look->home_count - 1] == at)
        return; /* neighbours lie in the same */
    uint64_t *to = grown(look, look->homes, look->home_count, &look->home_room, sizeof *to);
    if (to == NULL)
        return;
    look->homes = to;
    look->homes[look->home_count++] = at;
}

/* The words from `at` on, up to n of them, each a block. */
static void cached_read(struct look *look, uint64_t at, uint64_t n, uint32_t cache)
{
    for (uint64_t i = 0; i < n && !look->no_memory; i++) {
        uint64_t block;
        if (!target_read(look->t, at + i * WORD, &block, sizeof block)) {
            look->heap->skipped++;
            return;
        }
        cached_add(look, block, cache);
    }
}

static void stack_read(struct look *look, const unsigned char *cache, unsigned stack,
                       uint32_t number)
{
    const struct watch_caches *w = &look->heap->tables.caches;
    const unsigned char *cold = cache + w->cold_at + (size_t)stack * w->cold_bytes;
    const unsigned char *bin = cache + w->bins_at + (size_t)stack * w->bin_bytes;
    uint64_t base = word_at(cold, w->base_at);
    uint64_t top = word_at(bin, w->top_at);
    uint64_t room = half_at(cold, w->room_at) & w->room_mask;
    uint64_t floor = base + (quarter_at(cold, w->floor_at) & w->floor_mask) * (uint64_t)WORD;
    if (base == 0 || top <= floor)
        return;
    uint64_t n = (top - floor) / WORD;
    if (n > room) {
        look->heap->skipped++;
        return;
    }
    cached_read(look, floor + WORD, n, number);
}

static bool caches_read(struct look *look)
{
    struct heap *heap = look->heap;
    const struct watch_caches *w = &heap->tables.caches;
    uint64_t at = 0;
    uint32_t generation = 0;
    if (!target_read(look->t, address(w->every), &at, sizeof at) ||
        !target_read(look->t, address(w->generation), &generation, sizeof generation))
        return false;
    unsigned char *cache = malloc(w->size);
    while (at != 0 && cache != NULL && heap->cache_count < CACHES_MOST) {
        if (!target_read(look->t, at, cache, w->size)) {
            heap->skipped++;
            break;
        }
        struct cache_sum *more =
            realloc(heap->caches, (heap->cache_count + 1) * sizeof *heap->caches);
        if (more == NULL)
            break;
        heap->caches = more;
        uint32_t number = (uint32_t)heap->cache_count++;
        uint32_t whose = half_at(cache, w->generation_at);
        heap->caches[number] = (struct cache_sum){.living = whose != 0 && whose == generation};
        for (unsigned stack = 0; stack < w->stacks; stack++)
            stack_read(look, cache, stack, number);
        at = word_at(cache, w->every_at);
    }
    look->no_memory |= cache == NULL;
    free(cache);
    return true;
}

static void transfers_read(struct look *look)
{
    const struct watch_transfer *w = &look->heap->tables.transfer;
    for (unsigned cls = 0; cls < look->heap->tables.slabs.classes; cls++) {
        uint64_t at = address(w->first) + (uint64_t)cls * w->stride;
        uint32_t count = 0;
        uint32_t capacity = 0;
        uint64_t blocks = 0;
        if (!target_read(look->t, at + w->count_at, &count, sizeof count) || count == 0)
            continue; /* a page without any is perhaps not there */
        if (!target_read(look->t, at + w->capacity_at, &capacity, sizeof capacity) ||
            !target_read(look->t, at + w->blocks_at, &blocks, sizeof blocks) || count > capacity ||
            count > 1u << 20)
            look->heap->skipped++;
        else
            cached_read(look, blocks, count, IN_TRANSFER);
    }
}

static int by_number(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a;
    uint64_t right = *(const uint64_t *)b;
    return left < right ? -1 : left > right;
}

static int by_address(const void *a, const void *b)
{
    const struct cached *left = a;
    const struct cached *right = b;
    return left->block < right->block ? -1 : left->block > right->block;
}

/* The first of them at or above the address. */
static const struct cached *cached_from(const struct look *look, uint64_t at)
{
    size_t low = 0, high = look->cached_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (look->cached[middle].block < at)
            low = middle + 1;
        else
            high = middle;
    }
    return look->cached + low;
}

/* ---- what is resident ---- */

/* Tells the mappings that these bytes are the heap's, and returns how many pages of them are
 * resident; `present` gets a byte for each, if it is given. The rest of such a mapping is the
 * heap's, too, unless the mapping is a file's. */
static uint64_t claim(struct look *look, uint64_t start, uint64_t bytes, uint8_t *present)
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
            if (m == NULL)
                some[i] = 0;
            else
                m->heap |= !look->in_file;
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

static void count(struct look *look, struct class_sum *sum, enum heap_line line, uint64_t bytes)
{
    look->heap->resident[line] += bytes;
    if (sum != NULL)
        sum->resident[line] += bytes;
}

/* All of a mapping's or an array's resident pages belong to one line. */
static void count_whole(struct look *look, uint64_t start, uint64_t bytes, enum heap_line line)
{
    count(look, NULL, line, claim(look, start, bytes, NULL) * PAGE);
}

/* ---- slabs ---- */

struct slab {
    uint64_t base, bytes;
    unsigned cls;
    uint32_t size, blocks, usable;
    bool free_whole; /* its one block of whole slices is free, in some cache */
    uint64_t words[SLAB_BLOCKS_MOST / 64];
};

/* Reads the slab at its descriptor's address; false where that is none, or of another address. */
static bool slab_read(struct look *look, uint64_t at, uint64_t slice, struct slab *slab)
{
    const struct watch_slabs *w = &look->heap->tables.slabs;
    unsigned char head[1024];
    if (!target_read(look->t, at, head, w->slab_bytes))
        return false;
    slab->base = word_at(head, w->base_at);
    slab->cls = head[w->cls_at];
    slab->usable = half_at(head, w->usable_at);
    if (slab->base != slice || slab->cls >= w->classes)
        return false;
    const struct class_sum *sum = &look->heap->classes[slab->cls];
    slab->size = sum->size;
    slab->blocks = sum->blocks;
    slab->bytes = (uint64_t)sum->slices << look->heap->tables.map.slice_bits;
    if (slab->blocks == 0 || (uint64_t)slab->blocks * slab->size > slab->bytes ||
        !target_mapped(look->t, slab->base, slab->bytes))
        return false;
    home_note(look, word_at(head, w->home_at));
    return target_read(look->t, at + w->words_at, slab->words,
                       (slab->blocks + 63) / 64 * sizeof *slab->words);
}

/* One block of whole slices: what the program may use of it, and the end. */
static void whole_count(struct look *look, struct class_sum *sum, const struct slab *slab,
                        const uint8_t *present)
{
    const struct cached *cached = cached_from(look, slab->base);
    bool in_cache = cached < look->cached + look->cached_count && cached->block == slab->base;
    uint64_t used = slab->usable != 0 && slab->usable < slab->bytes ? slab->usable : slab->bytes;
    enum heap_line line = LINE_LIVE;
    if (slab->free_whole || in_cache) {
        used = slab->bytes;
        line = in_cache && cached->cache == IN_TRANSFER ? LINE_TRANSFER : LINE_CACHES;
        sum->cached += line == LINE_CACHES;
        sum->in_transfer += line == LINE_TRANSFER;
    } else {
        sum->live++;
        look->heap->live_bytes += used;
    }
    for (uint64_t page = 0; page * PAGE < slab->bytes; page++)
        if (present[page])
            count(look, sum, page * PAGE < used ? line : LINE_ROUNDING, PAGE);
    if (in_cache && cached->cache != IN_TRANSFER) {
        struct cache_sum *cache = &look->heap->caches[cached->cache];
        cache->blocks++;
        cache->bytes += slab->size;
    }
}

/* Of the bytes [from, to) of a slab, those that are resident, in pages that are wanted or not. */
static uint64_t resident_in(const uint8_t *present, const uint8_t *used, int wanted, uint64_t from,
                            uint64_t to)
{
    uint64_t sum = 0;
    while (from < to) {
        uint64_t page = from / PAGE;
        uint64_t end = (page + 1) * PAGE < to ? (page + 1) * PAGE : to;
        if (present[page] && (wanted < 0 || used[page] == wanted))
            sum += end - from;
        from = end;
    }
    return sum;
}

static void blocks_count(struct look *look, struct class_sum *sum, const struct slab *slab,
                         const uint8_t *present)
{
    uint8_t used[SLAB_SLICES_MOST * 16 * 2] = {0}; /* pages with a block that is taken */
    const struct cached *cached = cached_from(look, slab->base);
    const struct cached *last = look->cached + look->cached_count;
    for (unsigned k = 0; k < slab->blocks; k++) {
        if (slab->words[k / 64] >> k % 64 & 1) {
            sum->free++;
            look->heap->free_bytes += slab->size;
            continue;
        }
        uint64_t from = (uint64_t)k * slab->size;
        uint64_t to = from + slab->size;
        for (uint64_t page = from / PAGE; page <= (to - 1) / PAGE; page++)
            used[page] = 1;
        enum heap_line line = LINE_LIVE;
        while (cached < last && cached->block < slab->base + from)
            cached++;
        uint64_t here = resident_in(present, used, -1, from, to);
        if (cached < last && cached->block == slab->base + from) {
            line = cached->cache == IN_TRANSFER ? LINE_TRANSFER : LINE_CACHES;
            if (line == LINE_CACHES) {
                struct cache_sum *cache = &look->heap->caches[cached->cache];
                cache->blocks++;
                cache->bytes += slab->size;
                cache->resident += here;
            }
        }
        sum->live += line == LINE_LIVE;
        sum->cached += line == LINE_CACHES;
        sum->in_transfer += line == LINE_TRANSFER;
        look->heap->live_bytes += line == LINE_LIVE ? slab->size : 0;
        count(look, sum, line, here);
    }
    for (unsigned k = 0; k < slab->blocks; k++) {
        if ((slab->words[k / 64] >> k % 64 & 1) == 0)
            continue;
        uint64_t from = (uint64_t)k * slab->size;
        uint64_t to = from + slab->size;
        count(look, sum, LINE_HOLES, resident_in(present, used, 1, from, to));
        count(look, sum, LINE_FREE_PAGES, resident_in(present, used, 0, from, to));
    }
    uint64_t end = (uint64_t)slab->blocks * slab->size;
    count(look, sum, LINE_ROUNDING, resident_in(present, used, 1, end, slab->bytes));
    count(look, sum, LINE_FREE_PAGES, resident_in(present, used, 0, end, slab->bytes));
}

static void slab_count(struct look *look, struct slab *slab)
{
    uint8_t present[SLAB_SLICES_MOST * 16 * 2];
    struct class_sum *sum = &look->heap->classes[slab->cls];
    if (!spans_add(&look->seen, slab->base, slab->base + slab->bytes)) {
        look->heap->skipped++;
        return;
    }
    claim(look, slab->base, slab->bytes, present);
    sum->slabs++;
    if (slab->blocks == 1)
        whole_count(look, sum, slab, present);
    else
        blocks_count(look, sum, slab, present);
}

/* ---- huge blocks ---- */

/* Reads one; false where it makes no sense. */
static bool huge_read(struct look *look, uint64_t at, uint64_t *base, uint64_t *length,
                      uint64_t *usable)
{
    const struct watch_huge *w = &look->heap->tables.huge;
    unsigned char huge[1024];
    if (!target_read(look->t, at, huge, w->size))
        return false;
    *base = word_at(huge, w->base_at);
    *length = word_at(huge, w->length_at);
    *usable = word_at(huge, w->usable_at);
    return *length > 0 && target_mapped(look->t, *base, *length) && *usable <= *length &&
           spans_add(&look->seen, *base, *base + *length);
}

static void huge_count(struct look *look, uint64_t at)
{
    uint64_t base;
    uint64_t length;
    uint64_t usable;
    if (!huge_read(look, at, &base, &length, &usable)) {
        look->heap->skipped++;
        return;
    }
    look->heap->huge_blocks++;
    look->heap->huge_bytes += usable;
    look->heap->live_bytes += usable;
    uint64_t used = (usable + PAGE - 1) / PAGE * PAGE;
    used = used < length ? used : length;
    count_whole(look, base, used, LINE_LIVE);
    count_whole(look, base + used, length - used, LINE_ROUNDING);
}

/* ---- the map ---- */

static uint64_t leaf_at(struct look *look, uint64_t region)
{
    const struct watch_map *w = &look->heap->tables.map;
    uint64_t at = 0;
    if (region >= w->root_entries ||
        !target_read(look->t, address(w->root) + region * WORD, &at, sizeof at))
        return 0;
    return at;
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
    struct slab slab;
    if (bin == w->bin_huge) {
        huge_count(look, owner);
    } else if (bin >= w->bin_whole) {
        if (spans_meet(&look->seen, slice, slice + 1))
            return; /* a further slice of a slab */
        slab.free_whole = bin == w->bin_whole_free;
        if (slab_read(look, owner, slice, &slab))
            slab_count(look, &slab);
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
    while (at < m->end && look->t->budget > 0) {
        uint64_t region = at >> w->leaf_bits;
        uint64_t next = (region + 1) << w->leaf_bits;
        uint64_t leaf = leaf_at(look, region);
        if (leaf == 0) {
            at = next;
            continue;
        }
        uint64_t in_page = PAGE / WORD - (at >> w->slice_bits) % slices % (PAGE / WORD);
        uint64_t owners[PAGE / WORD];
        uint64_t from = leaf + w->owners_at + (at >> w->slice_bits) % slices * WORD;
        if (!target_read(look->t, from, owners, (size_t)in_page * WORD)) {
            at += in_page * slice_bytes;
            continue;
        }
        for (uint64_t i = 0; i < in_page && at < m->end && look->t->budget > 0;
             i++, at += slice_bytes)
            if (owners[i] != 0)
                entry_count(look, leaf, at, owners[i]);
    }
    return look->t->budget > 0;
}

/* ---- what no entry of the map names ---- */

static void superslab_count(struct look *look, uint64_t at)
{
    const struct watch_superslabs *w = &look->heap->tables.superslabs;
    uint64_t slice = (uint64_t)1 << look->heap->tables.map.slice_bits;
    unsigned char s[1024];
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
    for (unsigned i = 0; i < slices; i++) {
        uint64_t start = base + i * slice;
        if ((free >> i & 1) != 0 && spans_add(&look->seen, start, start + slice))
            count_whole(look, start, slice, touched >> i & 1 ? LINE_SLICES : LINE_HUGE_PAGES);
    }
}

/* Members of a list, whose head is outside of the heap: what lies before a member by node_at. A
 * list may change meanwhile, so it ends where it leads to nothing. */
static uint64_t list_walk(struct look *look, uint64_t head, uint32_t node_at,
                          void (*member)(struct look *, uint64_t at))
{
    uint64_t node = 0;
    uint64_t n = 0;
    if (!target_read(look->t, head, &node, sizeof node))
        return 0;
    for (; node != 0 && node != head && n < NODES_MOST && look->t->budget > 0; n++) {
        uint64_t next = 0;
        if (!target_read(look->t, node, &next, sizeof next)) {
            look->heap->skipped++;
            break;
        }
        member(look, node - node_at);
        node = next;
    }
    return n;
}

static void superslabs_read(struct look *look)
{
    const struct watch_superslabs *w = &look->heap->tables.superslabs;
    for (unsigned i = 0; i < w->lists; i++)
        list_walk(look, address(w->by_longest) + i * 2 * WORD, w->node_at, home_note);
    list_walk(look, address(w->dense), w->node_at, home_note);
    qsort(look->homes, look->home_count, sizeof *look->homes, by_number);
    for (size_t i = 0; i < look->home_count; i++)
        if (i == 0 || look->homes[i] != look->homes[i - 1])
            superslab_count(look, look->homes[i]);
}

static void kept_count(struct look *look, uint64_t at)
{
    uint64_t base;
    uint64_t length;
    uint64_t usable;
    if (huge_read(look, at, &base, &length, &usable))
        count_whole(look, base, length, LINE_KEPT);
    else
        look->heap->skipped++;
}

static void metadata_read(struct look *look)
{
    const struct watch_meta *meta = &look->heap->tables.meta;
    const struct watch_map *map = &look->heap->tables.map;
    uint64_t at = 0;
    target_read(look->t, address(meta->first), &at, sizeof at);
    for (unsigned n = 0; at != 0 && n < REGIONS_MOST && look->t->budget > 0; n++) {
        uint64_t length = 0;
        uint64_t next = 0;
        if (!target_read(look->t, at + meta->length_at, &length, sizeof length) ||
            !target_read(look->t, at + meta->next_at, &next, sizeof next) || length == 0 ||
            !target_mapped(look->t, at, length) || !spans_add(&look->seen, at, at + length)) {
            look->heap->skipped++;
            break;
        }
        count_whole(look, at, length, LINE_METADATA);
        at = next;
    }
    for (uint64_t region = 0; region < map->root_entries; region++) {
        if (region % (PAGE / WORD) == 0) {
            uint8_t present;
            target_presence(look->t, address(map->root) + region * WORD, 1, &present);
            if (!present)
                region += PAGE / WORD - 1;
        }
        uint64_t leaf = leaf_at(look, region);
        uint64_t length = (map->leaf_bytes + PAGE - 1) / PAGE * PAGE;
        if (leaf != 0 && length != 0 && target_mapped(look->t, leaf, length) &&
            spans_add(&look->seen, leaf, leaf + length))
            count_whole(look, leaf, length, LINE_METADATA);
    }
}

/* The library itself. Its large tables are in any case ours, and all of it if it is a file of its
 * own. */
static void library_read(struct look *look)
{
    const struct watch_map *map = &look->heap->tables.map;
    look->in_file = true;
    const struct mapping *library = target_mapping(look->t, look->heap->tables.at);
    const char *name = library != NULL ? library->name : "";
    const char *file = strrchr(name, '/');
    bool own = file != NULL && strncmp(file, "/libhakmem", strlen("/libhakmem")) == 0;
    const struct mapping *before = NULL;
    for (size_t i = 0; own && i < look->t->map_count; i++) {
        const struct mapping *m = &look->t->maps[i];
        bool behind = before != NULL && before->end == m->start && !m->file && *m->name == 0;
        before = strcmp(m->name, name) == 0 ? m : NULL;
        if ((before != NULL || behind) && spans_add(&look->seen, m->start, m->end))
            count_whole(look, m->start, m->end - m->start, LINE_METADATA);
    }
    const struct span tables[] = {
        {address(map->root), map->root_entries * (uint64_t)WORD},
        {address(map->window_bins), map->window_slices * sizeof(uint16_t)},
    };
    for (unsigned i = 0; i < 2; i++) {
        uint64_t start = tables[i].start & ~(uint64_t)(PAGE - 1);
        uint64_t end = tables[i].start + tables[i].bytes;
        if (end > start && target_mapped(look->t, start, end - start) &&
            spans_add(&look->seen, start, end))
            count_whole(look, start, end - start, LINE_METADATA);
    }
    look->in_file = false;
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
            look->heap->tables.map.slice_bits > 17)
            return false;
    }
    return true;
}

bool heap_read(struct target *t, struct heap *heap, char *why, size_t room)
{
    struct look look = {.t = t, .heap = heap};
    bool sense = classes_read(&look) && caches_read(&look);
    if (sense) {
        transfers_read(&look);
        qsort(look.cached, look.cached_count, sizeof *look.cached, by_address);
        for (size_t i = 0; i < t->map_count && sense && !look.no_memory; i++)
            if (t->maps[i].writable || t->maps[i].readable)
                sense = mapping_walk(&look, &t->maps[i]);
        superslabs_read(&look);
        list_walk(&look, address(heap->tables.huge.dirty), heap->tables.huge.node_at, kept_count);
        metadata_read(&look);
        library_read(&look);
        counters_read(&look);
        sense = sense && t->budget > 0;
    }
    free(look.cached);
    free(look.homes);
    bool no_memory = look.no_memory || look.seen.no_memory;
    spans_release(&look.seen);
    if (no_memory)
        return because(why, room, EXIT_TARGET, "no memory left to look at so large a heap");
    if (!sense)
        return because(why, room, EXIT_NONSENSE,
                       "what its hakmem says of its heap makes no sense: its memory is damaged, or "
                       "it means to mislead");
    return true;
}

void heap_release(struct heap *heap)
{
    free(heap->caches);
    heap->caches = NULL;
}

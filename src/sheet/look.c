#include "sheet/look.h"

/* ---- the tables ---- */

/* What the first version of this format had. */
#define WATCH_LEAST offsetof(struct hakmem_watch, orders)

/* A table of an older library is shorter: what it lacks is zero. */
static bool copy(struct target *t, const void *from, void *to, size_t bytes)
{
    uint32_t length;
    bool copied = target_read(t, address(from), &length, sizeof length) &&
                  length >= sizeof length && length <= 65536 &&
                  target_read(t, address(from), to, length < bytes ? length : bytes);
    if (!copied)
        memset(to, 0, bytes);
    return copied;
}

struct field {
    uint32_t at, bytes;
};

/* Whether all fields lie in so many bytes. */
static bool hold(uint32_t whole, const struct field *fields, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (fields[i].at > whole || whole - fields[i].at < fields[i].bytes)
            return false;
    return true;
}

#define HOLDS(whole, ...)                            \
    hold(whole, (const struct field[]){__VA_ARGS__}, \
         sizeof((const struct field[]){__VA_ARGS__}) / sizeof(struct field))

static bool map_possible(const struct watch_map *m)
{
    if (m->slice_bits < 12 || m->slice_bits > 24 || m->leaf_bits <= m->slice_bits ||
        m->leaf_bits > 40 || m->root_entries > 1u << 20 || m->middle_entries == 0 ||
        m->middle_entries > 1u << 20 || m->bin_bytes == 0 || m->leaf_bytes > 1u << 28)
        return false;
    uint64_t slices = (uint64_t)1 << (m->leaf_bits - m->slice_bits);
    return slices * 8 <= m->leaf_bytes && m->window_slices <= (uint64_t)1 << 36 &&
           HOLDS(m->leaf_bytes, {m->owners_at, (uint32_t)slices * 8},
                 {m->bins_at, (uint32_t)slices * 2});
}

static bool slabs_possible(const struct watch_slabs *s)
{
    return s->classes >= 1 && s->classes <= CLASSES_MOST && s->class_bytes <= 256 &&
           HOLDS(s->class_bytes, {s->size_at, 4}, {s->blocks_at, 2}, {s->slices_at, 1}) &&
           s->slab_bytes <= 1024 &&
           HOLDS(s->slab_bytes, {s->base_at, 8}, {s->home_at, 8}, {s->cls_at, 1}, {s->usable_at, 4},
                 {s->places_at, 2}, {s->words_at, 0});
}

static bool superslabs_possible(const struct watch_superslabs *s)
{
    return s->lists <= 64 && s->size <= 1024 &&
           HOLDS(s->size, {s->node_at, 16}, {s->base_at, 8}, {s->free_at, 8}, {s->touched_at, 8},
                 {s->slices_at, 1});
}

static bool huge_possible(const struct watch_huge *h)
{
    return h->size <= 1024 &&
           HOLDS(h->size, {h->node_at, 16}, {h->base_at, 8}, {h->length_at, 8}, {h->usable_at, 8});
}

static bool caches_possible(const struct watch_caches *c)
{
    return c->size <= CACHE_MOST && c->stacks <= STACKS_MOST && c->bin_bytes <= 256 &&
           c->cold_bytes <= 256 && c->aheads <= STACKS_MOST && c->ahead_bytes <= 256 &&
           c->ahead_most <= STACKS_MOST && c->held_classes <= STACKS_MOST &&
           HOLDS(c->size, {c->every_at, 8}, {c->generation_at, 4}, {c->mine_at, 8}, {c->held_at, 8},
                 {c->bins_at, c->stacks * c->bin_bytes}, {c->cold_at, c->stacks * c->cold_bytes},
                 {c->ahead_at, c->aheads * c->ahead_bytes}) &&
           HOLDS(c->bin_bytes, {c->top_at, 8}, {c->closes_at, 8}) &&
           HOLDS(c->cold_bytes, {c->base_at, 8}, {c->room_at, 4}) &&
           (c->aheads == 0 || HOLDS(c->ahead_bytes, {c->top_at, 8}));
}

static bool profile_possible(const struct watch_profile *p)
{
    const uint32_t tally = (uint32_t)tally_bytes(p);
    return p->buckets <= BUCKETS_MOST && p->size <= 1024 && p->sample_size <= 256 &&
           HOLDS(p->size, {p->next_at, 8}, {p->total_at, tally}, {p->live_at, tally},
                 {p->peak_at, tally}, {p->depth_at, 8}, {p->name_at, 8}, {p->since_at, 8}) &&
           (p->samples == NULL || HOLDS(p->sample_size, {p->sample_next_at, 8}, {p->sample_p_at, 8},
                                        {p->sample_site_at, 8}, {p->sample_requested_at, 8},
                                        {p->sample_block_at, 8}, {p->sample_weight_at, 8})) &&
           (p->lines == NULL ||
            (p->line_size <= 256 &&
             HOLDS(p->line_size, {p->line_next_at, 8}, {p->line_address_at, 8},
                   {p->line_number_at, 4}, {p->line_function_at, 4}, {p->line_file_at, 4}))) &&
           (p->modules == NULL ||
            (p->module_size <= 256 &&
             HOLDS(p->module_size, {p->module_next_at, 8}, {p->module_bytes_at, 4})));
}

static bool all_possible(const struct tables *tables)
{
    return map_possible(&tables->map) && slabs_possible(&tables->slabs) &&
           superslabs_possible(&tables->superslabs) && huge_possible(&tables->huge) &&
           caches_possible(&tables->caches);
}

/* False where one is missing that the first version had. */
static bool all_copied(struct target *t, const struct hakmem_watch *watch, struct tables *tables)
{
    bool all = true;
#define LATER(name) copy(t, watch->name, &tables->name, sizeof tables->name);
#define NEEDED(name) all = all && LATER(name)
    WATCH_TABLES(NEEDED, LATER)
#undef NEEDED
#undef LATER
    return all;
}

bool tables_read(struct target *t, uint64_t at, struct tables *tables, struct why *why)
{
    struct hakmem_watch watch;
    *tables = (struct tables){.at = at};
    if (!target_read(t, at, &watch, 16) ||
        memcmp(watch.magic, WATCH_MAGIC, sizeof watch.magic) != 0)
        return why_set(
            why, EXIT_NONSENSE,
            "its hakmem does not say where its heap is: it is being started, or damaged");
    if (watch.format != WATCH_FORMAT)
        return why_set(why, EXIT_NONSENSE,
                       "its hakmem describes the heap in another format than this command knows: "
                       "use the command that came with that library");
    uint32_t bytes = watch.bytes < sizeof watch ? watch.bytes : (uint32_t)sizeof watch;
    memset(&watch, 0, sizeof watch);
    if (bytes >= WATCH_LEAST && target_read(t, at, &watch, bytes)) {
        memcpy(tables->version, watch.version, sizeof watch.version);
        for (char *c = tables->version; *c != 0; c++)
            if ((*c < '0' || *c > '9') && *c != '.')
                *c = '?';
        if (all_copied(t, &watch, tables) && all_possible(tables)) {
            if (!profile_possible(&tables->profile))
                tables->profile = (struct watch_profile){0};
            if (tables->marks.most > MARKS_MOST)
                tables->marks = (struct watch_marks){0};
            return true;
        }
    }
    return why_set(why, EXIT_NONSENSE,
                   "its description of the heap is invalid: the memory is corrupt, or forged");
}

unsigned marks_read(struct target *t, const struct tables *tables, struct watch_mark *marks)
{
    unsigned count = 0;
    for (uint64_t at = address(tables->marks.marks); count < tables->marks.most; count++) {
        struct watch_mark *mark = &marks[count];
        if (!target_read(t, at + count * sizeof *mark, mark, sizeof *mark) || mark->count == 0)
            break;
        mark->name[MARK_NAME - 1] = '\0';
    }
    return count;
}

/* ---- pages and lists ---- */

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

/* ---- caches ---- */

#define CACHES_MOST 100000
#define TRANSFER_MOST (1u << 20)

/* False where that can't be, which counts. */
static bool read_or_skip(struct look *look, uint64_t at, void *to, size_t bytes)
{
    bool done = target_spend(look->t) && target_read(look->t, at, to, bytes);
    look->heap->skipped += !done;
    return done && !look->t->room.short_of;
}

/* The words from `at` on, up to n of them, each a block. */
static void cached_read(struct look *look, uint64_t at, uint64_t n, uint32_t cache)
{
    uint64_t block;
    for (uint64_t i = 0; i < n && read_or_skip(look, at + i * WORD, &block, WORD); i++)
        spans_add(&look->cached, block, block + 1, cache);
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
    if (base == 0 || top <= base)
        return;
    uint64_t n = (top - base) / WORD;
    if (n > room) {
        look->heap->skipped++;
        return;
    }
    cached_read(look, base + WORD, n, number);
}

/* From the top down to the window's base. */
static void ahead_read(struct look *look, const unsigned char *ahead, uint32_t number)
{
    const struct watch_caches *w = &look->heap->tables.caches;
    uint64_t block, top = word_at(ahead, w->top_at);
    for (uint32_t i = 0; top != 0 && i <= w->ahead_most; i++) {
        if (!read_or_skip(look, top, &block, WORD) || block == look->heap->tables.map.window_base)
            return;
        if (i < w->ahead_most)
            spans_add(&look->cached, block, block + 1, number);
        top -= WORD;
    }
}

#define HELD_MOST 100000

static void held_class_read(struct look *look, uint64_t at, uint32_t number)
{
    struct watch_held held;
    if (!read_or_skip(look, at, &held, sizeof held))
        return;
    if (held.ready > held.ready_most || held.held > held.held_most || held.ready_most > HELD_MOST ||
        held.held_most > HELD_MOST) {
        look->heap->skipped++;
        return;
    }
    at += sizeof held;
    cached_read(look, at, held.ready, number);
    cached_read(look, at + (uint64_t)held.ready_most * WORD, held.held, number);
}

/* What a thread has in a hardened heap. */
static void held_read(struct look *look, uint64_t at, uint32_t number)
{
    const struct watch_caches *w = &look->heap->tables.caches;
    for (uint32_t i = 0; i < w->held_classes && at != 0 && !look->t->room.short_of; i++) {
        uint64_t of_class;
        if (read_or_skip(look, at + w->held_first + (uint64_t)i * WORD, &of_class, WORD) &&
            of_class != 0)
            held_class_read(look, of_class, number);
    }
}

static bool cache_read(struct look *look, uint64_t at)
{
    struct heap *heap = look->heap;
    const struct watch_caches *w = &heap->tables.caches;
    unsigned char *cache = look->cache;
    struct cache_sum *more = room_grown(&look->t->room, heap->caches, heap->cache_count,
                                        &look->cache_room, sizeof *heap->caches);
    if (more == NULL)
        return false;
    heap->caches = more;
    if (heap->cache_count == CACHES_MOST || !target_read(look->t, at, cache, w->size))
        return false;
    uint32_t number = (uint32_t)heap->cache_count++;
    uint32_t whose = half_at(cache, w->generation_at);
    heap->caches[number] = (struct cache_sum){
        .mine = w->mine_at != 0 ? word_at(cache, w->mine_at) : 0,
        .living = whose != 0 && whose == look->generation,
    };
    for (unsigned stack = 0; stack < w->stacks; stack++)
        stack_read(look, cache, stack, number);
    for (uint32_t i = 0; i < w->aheads; i++)
        ahead_read(look, cache + w->ahead_at + (size_t)i * w->ahead_bytes, number);
    if (w->held_classes != 0)
        held_read(look, word_at(cache, w->held_at), number);
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
            count > TRANSFER_MOST)
            look->heap->skipped++;
        else
            cached_read(look, blocks, count, IN_TRANSFER);
    }
}

void caches_read(struct look *look)
{
    const struct watch_caches *w = &look->heap->tables.caches;
    look->cache = room_get(&look->t->room, w->size);
    /* Before the first call nothing is there yet. */
    if (look->cache != NULL &&
        target_read(look->t, address(w->generation), &look->generation, sizeof look->generation))
        list_walk(look, address(w->every), w->every_at, cache_read);
    transfers_read(look);
}

/* ---- slabs ---- */

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

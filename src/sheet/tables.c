#include "sheet/tables.h"

#include <string.h>

/* ---- whether they are possible ---- */

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

static bool holds(uint32_t whole, uint32_t at, uint32_t bytes)
{
    return at <= whole && whole - at >= bytes;
}

static bool map_possible(const struct watch_map *m)
{
    if (m->slice_bits < 12 || m->slice_bits > 24 || m->leaf_bits <= m->slice_bits ||
        m->leaf_bits > 40 || m->root_entries > 1u << 20 || m->middle_entries == 0 ||
        m->middle_entries > 1u << 20 || m->bin_bytes == 0 || m->leaf_bytes > 1u << 28)
        return false;
    uint64_t slices = (uint64_t)1 << (m->leaf_bits - m->slice_bits);
    return slices * 8 <= m->leaf_bytes &&
           holds(m->leaf_bytes, m->owners_at, (uint32_t)slices * 8) &&
           holds(m->leaf_bytes, m->bins_at, (uint32_t)slices * 2) &&
           m->window_slices <= (uint64_t)1 << 36;
}

static bool slabs_possible(const struct watch_slabs *s)
{
    return s->classes >= 1 && s->classes <= CLASSES_MOST && s->class_bytes <= 256 &&
           holds(s->class_bytes, s->size_at, 4) && holds(s->class_bytes, s->blocks_at, 2) &&
           holds(s->class_bytes, s->slices_at, 1) && s->slab_bytes <= 1024 &&
           holds(s->slab_bytes, s->base_at, 8) && holds(s->slab_bytes, s->home_at, 8) &&
           holds(s->slab_bytes, s->cls_at, 1) && holds(s->slab_bytes, s->usable_at, 4) &&
           holds(s->slab_bytes, s->places_at, 2) && s->words_at <= s->slab_bytes;
}

static bool superslabs_possible(const struct watch_superslabs *s)
{
    return s->lists <= 64 && s->size <= 1024 && holds(s->size, s->node_at, 16) &&
           holds(s->size, s->base_at, 8) && holds(s->size, s->free_at, 8) &&
           holds(s->size, s->touched_at, 8) && holds(s->size, s->slices_at, 1);
}

static bool huge_possible(const struct watch_huge *h)
{
    return h->size <= 1024 && holds(h->size, h->node_at, 16) && holds(h->size, h->base_at, 8) &&
           holds(h->size, h->length_at, 8) && holds(h->size, h->usable_at, 8);
}

static bool caches_possible(const struct watch_caches *c)
{
    return c->size <= CACHE_MOST && c->stacks <= STACKS_MOST && c->bin_bytes <= 256 &&
           c->cold_bytes <= 256 && holds(c->size, c->every_at, 8) &&
           holds(c->size, c->generation_at, 4) && holds(c->size, c->mine_at, 8) &&
           (uint64_t)c->bins_at + c->stacks * c->bin_bytes <= c->size &&
           (uint64_t)c->cold_at + c->stacks * c->cold_bytes <= c->size &&
           c->aheads <= STACKS_MOST && c->ahead_bytes <= 256 && c->ahead_most <= STACKS_MOST &&
           (uint64_t)c->ahead_at + c->aheads * c->ahead_bytes <= c->size &&
           (c->aheads == 0 || holds(c->ahead_bytes, c->top_at, 8)) &&
           c->held_classes <= STACKS_MOST && holds(c->size, c->held_at, 8) &&
           holds(c->bin_bytes, c->top_at, 8) && holds(c->bin_bytes, c->closes_at, 8) &&
           holds(c->cold_bytes, c->base_at, 8) && holds(c->cold_bytes, c->room_at, 4);
}

static bool profile_possible(const struct watch_profile *p)
{
    return p->buckets <= BUCKETS_MOST && p->size <= 1024 && holds(p->size, p->next_at, 8) &&
           holds(p->size, p->total_at, tally_bytes(p)) &&
           holds(p->size, p->live_at, tally_bytes(p)) &&
           holds(p->size, p->peak_at, tally_bytes(p)) && holds(p->size, p->depth_at, 8) &&
           holds(p->size, p->name_at, 8) && holds(p->size, p->since_at, 8) &&
           p->sample_size <= 256 &&
           (p->samples == NULL || (holds(p->sample_size, p->sample_next_at, 8) &&
                                   holds(p->sample_size, p->sample_p_at, 8) &&
                                   holds(p->sample_size, p->sample_site_at, 8) &&
                                   holds(p->sample_size, p->sample_requested_at, 8) &&
                                   holds(p->sample_size, p->sample_block_at, 8) &&
                                   holds(p->sample_size, p->sample_weight_at, 8))) &&
           (p->lines == NULL || (p->line_size <= 256 && holds(p->line_size, p->line_next_at, 8) &&
                                 holds(p->line_size, p->line_address_at, 8) &&
                                 holds(p->line_size, p->line_number_at, 4) &&
                                 holds(p->line_size, p->line_function_at, 4) &&
                                 holds(p->line_size, p->line_file_at, 4))) &&
           (p->modules == NULL ||
            (p->module_size <= 256 && holds(p->module_size, p->module_next_at, 8) &&
             holds(p->module_size, p->module_bytes_at, 4)));
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

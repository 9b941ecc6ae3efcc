#include "tables.h"

#include <elf.h>
#include <string.h>

#include "why.h"

static uint64_t address(const void *p) { return (uint64_t)(uintptr_t)p; }

/* ---- where they are: a note of the file that holds the library ---- */

#define NOTES_MOST 4096
#define HEADERS_MOST 64

static uint32_t padded(uint32_t n) { return (n + 3) & ~3u; }

/* Where the note of ours points, in a segment of notes; 0 if it is not there. */
static uint64_t in_notes(struct target *t, uint64_t at, uint64_t bytes)
{
    unsigned char notes[NOTES_MOST];
    size_t length = bytes < sizeof notes ? (size_t)bytes : sizeof notes;
    if (!target_read(t, at, notes, length))
        return 0;
    for (size_t i = 0; i + sizeof(Elf64_Nhdr) <= length;) {
        Elf64_Nhdr note;
        memcpy(&note, notes + i, sizeof note);
        i += sizeof note;
        if (note.n_namesz > length || note.n_descsz > length)
            return 0;
        size_t described = i + padded(note.n_namesz);
        int32_t distance;
        if (note.n_type == WATCH_NOTE && note.n_namesz == sizeof "hakmem" &&
            note.n_descsz == sizeof distance && described + sizeof distance <= length &&
            memcmp(notes + i, "hakmem", sizeof "hakmem") == 0) {
            memcpy(&distance, notes + described, sizeof distance);
            return at + described + (uint64_t)(int64_t)distance;
        }
        i = described + padded(note.n_descsz);
    }
    return 0;
}

/* Of a file that is mapped from its start. */
static uint64_t in_file(struct target *t, const struct mapping *m)
{
    Elf64_Ehdr elf;
    if (!target_read(t, m->start, &elf, sizeof elf) || memcmp(elf.e_ident, ELFMAG, SELFMAG) != 0 ||
        elf.e_ident[EI_CLASS] != ELFCLASS64 || elf.e_phentsize != sizeof(Elf64_Phdr) ||
        elf.e_phnum > HEADERS_MOST)
        return 0;
    Elf64_Phdr headers[HEADERS_MOST];
    if (!target_read(t, m->start + elf.e_phoff, headers, elf.e_phnum * sizeof *headers))
        return 0;
    uint64_t loaded = 0;
    bool found = false;
    for (unsigned i = 0; i < elf.e_phnum && !found; i++)
        if (headers[i].p_type == PT_LOAD) {
            loaded = m->start - (headers[i].p_vaddr - headers[i].p_offset);
            found = true;
        }
    uint64_t at = 0;
    for (unsigned i = 0; i < elf.e_phnum && at == 0; i++)
        if (headers[i].p_type == PT_NOTE)
            at = in_notes(t, loaded + headers[i].p_vaddr, headers[i].p_memsz);
    return at;
}

/* Whether a thread has ever used this one: a program may hold a second one that nobody calls. */
static bool is_used(struct target *t, const struct tables *tables)
{
    uint64_t first = 0;
    return target_read(t, address(tables->caches.every), &first, sizeof first) && first != 0;
}

bool tables_find(struct target *t, struct tables *tables, char *why, size_t room)
{
    bool found = false;
    because(why, room, EXIT_WITHOUT,
            "it does not use hakmem, or one that is older than this command can read");
    for (size_t i = 0; i < t->map_count; i++) {
        const struct mapping *m = &t->maps[i];
        uint64_t at = m->offset == 0 && m->file && m->readable ? in_file(t, m) : 0;
        struct tables one;
        if (at == 0 || !tables_read(t, at, &one, why, room))
            continue;
        if (!found || is_used(t, &one))
            *tables = one;
        found = true;
    }
    return found;
}

/* ---- whether they are possible ---- */

/* What the first version of this format had. */
#define WATCH_LEAST offsetof(struct hakmem_watch, orders)

/* A table of an older library is shorter: what it lacks is zero. */
static bool copy(struct target *t, const void *from, void *to, size_t bytes)
{
    uint32_t length;
    memset(to, 0, bytes);
    return target_read(t, address(from), &length, sizeof length) && length >= sizeof length &&
           length <= 65536 && target_read(t, address(from), to, length < bytes ? length : bytes);
}

static bool holds(uint32_t whole, uint32_t at, uint32_t bytes)
{
    return at <= whole && whole - at >= bytes;
}

static bool map_possible(const struct watch_map *m)
{
    if (m->slice_bits < 12 || m->slice_bits > 24 || m->leaf_bits <= m->slice_bits ||
        m->leaf_bits > 40 || m->root_entries > 1u << 20 || m->bin_bytes == 0 ||
        m->leaf_bytes > 1u << 28)
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
           s->words_at <= s->slab_bytes;
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
           holds(c->size, c->generation_at, 4) &&
           (uint64_t)c->bins_at + c->stacks * c->bin_bytes <= c->size &&
           (uint64_t)c->cold_at + c->stacks * c->cold_bytes <= c->size &&
           holds(c->bin_bytes, c->top_at, 8) && holds(c->bin_bytes, c->limit_at, 8) &&
           holds(c->cold_bytes, c->base_at, 8) && holds(c->cold_bytes, c->floor_at, 2) &&
           holds(c->cold_bytes, c->room_at, 4);
}

static bool all_possible(const struct tables *tables)
{
    return map_possible(&tables->map) && slabs_possible(&tables->slabs) &&
           superslabs_possible(&tables->superslabs) && huge_possible(&tables->huge) &&
           caches_possible(&tables->caches);
}

bool tables_read(struct target *t, uint64_t at, struct tables *tables, char *why, size_t room)
{
    struct hakmem_watch watch;
    *tables = (struct tables){.at = at};
    if (!target_read(t, at, &watch, 16) ||
        memcmp(watch.magic, WATCH_MAGIC, sizeof watch.magic) != 0)
        return because(
            why, room, EXIT_NONSENSE,
            "its hakmem does not say where its heap is: it is being started, or damaged");
    if (watch.format != WATCH_FORMAT)
        return because(
            why, room, EXIT_NONSENSE,
            "its hakmem describes the heap in format %u, and this command knows format %u: "
            "use the command that came with that library",
            watch.format, WATCH_FORMAT);
    uint32_t bytes = watch.bytes < sizeof watch ? watch.bytes : (uint32_t)sizeof watch;
    memset(&watch, 0, sizeof watch);
    if (bytes >= WATCH_LEAST && target_read(t, at, &watch, bytes)) {
        memcpy(tables->version, watch.version, sizeof watch.version);
        for (char *c = tables->version; *c != 0; c++)
            if ((*c < '0' || *c > '9') && *c != '.')
                *c = '?';
        if (copy(t, watch.map, &tables->map, sizeof tables->map) &&
            copy(t, watch.meta, &tables->meta, sizeof tables->meta) &&
            copy(t, watch.superslabs, &tables->superslabs, sizeof tables->superslabs) &&
            copy(t, watch.huge, &tables->huge, sizeof tables->huge) &&
            copy(t, watch.slabs, &tables->slabs, sizeof tables->slabs) &&
            copy(t, watch.transfer, &tables->transfer, sizeof tables->transfer) &&
            copy(t, watch.caches, &tables->caches, sizeof tables->caches) &&
            copy(t, watch.counters, &tables->counters, sizeof tables->counters) &&
            all_possible(tables)) {
            if (watch.orders != NULL)
                copy(t, watch.orders, &tables->orders, sizeof tables->orders);
            return true;
        }
    }
    return because(why, room, EXIT_NONSENSE,
                   "its description of the heap is invalid: the memory is corrupt, or forged");
}

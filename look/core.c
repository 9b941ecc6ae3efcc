#include "core.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "because.h"
#define SEGMENTS_MOST 65535
#define NOTES_MOST (64u << 20)

/* Beside each mapping: where its bytes are in the core, how many, and the file it is of, or -1. */
struct source {
    uint64_t offset, bytes;
    int file;
};

static struct source *sources;
static uint64_t core_bytes;
static bool cut;

static bool read_at(int file, uint64_t at, void *to, size_t bytes)
{
    return at <= INT64_MAX && pread(file, to, bytes, (off_t)at) == (ssize_t)bytes;
}

static const struct source *source_of(const struct target *t, uint64_t page, uint64_t *inside)
{
    const struct mapping *m = target_mapping(t, page);
    *inside = m != NULL ? page - m->start : 0;
    return m != NULL ? &sources[m - t->maps] : NULL;
}

static bool read_page(const struct target *t, uint64_t page, void *to)
{
    uint64_t inside;
    const struct source *s = source_of(t, page, &inside);
    if (s == NULL)
        return false;
    if (inside < s->bytes)
        return read_at(t->memory, s->offset + inside, to, PAGE);
    const struct mapping *m = target_mapping(t, page);
    memset(to, 0, PAGE);
    return s->file >= 0 && m->offset <= INT64_MAX / 2 &&
           pread(s->file, to, PAGE, (off_t)(m->offset + inside)) > 0;
}

static void presence(const struct target *t, uint64_t page, size_t n, uint8_t *present)
{
    for (size_t i = 0; i < n; i++, page += PAGE) {
        uint64_t inside;
        const struct source *s = source_of(t, page, &inside);
        present[i] = s != NULL && inside < s->bytes ? RESIDENT : 0;
    }
}

/* ---- the files that the core names ---- */

/* A part of a file that the process had mapped, with or without its bytes in the core. */
struct row {
    uint64_t start, end, offset;
    const char *name;
};

static struct row *rows; /* by addresses, and apart */
static size_t row_count;
static unsigned char *notes;

static int row_by_start(const void *a, const void *b)
{
    const struct row *left = a;
    const struct row *right = b;
    return left->start < right->start ? -1 : left->start > right->start;
}

/* The note of mapped files: a count, the size of a page, and for each its start, end and offset in
 * pages; then their names. */
static void read_rows(const unsigned char *note, size_t bytes)
{
    uint64_t head[2];
    if (rows != NULL || bytes < sizeof head)
        return;
    memcpy(head, note, sizeof head);
    uint64_t count = head[0];
    if (count > (bytes - sizeof head) / 24 || head[1] == 0 || head[1] > 1u << 24)
        return;
    const char *name = (const char *)note + sizeof head + count * 24;
    const char *end = (const char *)note + bytes;
    rows = calloc((size_t)count + 1, sizeof *rows);
    for (uint64_t i = 0; rows != NULL && i < count && name < end; i++) {
        uint64_t row[3];
        memcpy(row, note + sizeof head + i * 24, sizeof row);
        size_t length = strnlen(name, (size_t)(end - name));
        if (name + length == end)
            break;
        if (row[0] % PAGE == 0 && row[1] % PAGE == 0 && row[0] < row[1])
            rows[row_count++] = (struct row){row[0], row[1], row[2] * head[1], name};
        name += length + 1;
    }
    if (rows == NULL)
        return;
    qsort(rows, row_count, sizeof *rows, row_by_start);
    size_t apart = 0;
    for (size_t i = 0; i < row_count; i++)
        if (apart == 0 || rows[i].start >= rows[apart - 1].end)
            rows[apart++] = rows[i];
    row_count = apart;
}

static void read_notes(const struct target *t, uint64_t at, uint64_t bytes)
{
    notes = bytes <= NOTES_MOST ? malloc((size_t)bytes + 1) : NULL;
    if (notes == NULL || !read_at(t->memory, at, notes, (size_t)bytes))
        return;
    for (uint64_t i = 0; i + sizeof(Elf64_Nhdr) <= bytes;) {
        Elf64_Nhdr note;
        memcpy(&note, notes + i, sizeof note);
        uint64_t described = i + sizeof note + ((note.n_namesz + 3ull) & ~3ull);
        uint64_t next = described + ((note.n_descsz + 3ull) & ~3ull);
        if (described > bytes || next > bytes)
            break;
        if (note.n_type == NT_FILE)
            read_rows(notes + described, note.n_descsz);
        i = next;
    }
}

/* The first that ends beyond an address; row_count if none does. */
static size_t row_from(uint64_t at)
{
    size_t low = 0, high = row_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (rows[middle].end <= at)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Whether a file begins with what was dumped of its start; where that is not known, it does. */
static bool begins_so(const struct target *t, const struct mapping *m, const struct source *s,
                      int file)
{
    unsigned char dumped[PAGE];
    unsigned char now[PAGE];
    return m->offset != 0 || s->bytes < PAGE ||
           (read_at(t->memory, s->offset, dumped, PAGE) && read_at(file, 0, now, PAGE) &&
            memcmp(dumped, now, PAGE) == 0);
}

static int file_open(const char *name)
{
    struct stat is;
    int file = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file >= 0 && fstat(file, &is) == 0 && S_ISREG(is.st_mode))
        return file;
    if (file >= 0)
        close(file);
    return -1;
}

/* The files that mappings are of, if they are still the same. The parts of a file lie one after
 * another, and the first one shows whether it is. */
static void open_files(const struct target *t)
{
    const struct mapping *before = NULL;
    for (size_t i = 0; i < t->map_count; i++) {
        const struct mapping *m = &t->maps[i];
        if (!m->file)
            continue;
        bool further = before != NULL && strcmp(before->name, m->name) == 0;
        int file = further ? sources[before - t->maps].file : file_open(m->name);
        sources[i].file = file >= 0 && begins_so(t, m, &sources[i], file) ? file : -1;
        if (file >= 0 && sources[i].file < 0 && !further)
            close(file);
        before = m;
    }
}

/* ---- the mappings ---- */

static int by_start(const void *a, const void *b)
{
    const Elf64_Phdr *left = a;
    const Elf64_Phdr *right = b;
    return left->p_vaddr < right->p_vaddr ? -1 : left->p_vaddr > right->p_vaddr;
}

/* One more, which ends after the others; `row` is null if it is of no file. */
static struct mapping *add_mapping(struct target *t, uint64_t start, uint64_t end,
                                   const struct row *row)
{
    struct mapping *m = target_add(t, row != NULL ? row->name : "");
    if (m == NULL)
        return NULL;
    m->start = start;
    m->end = end;
    m->file = row != NULL;
    m->offset = row != NULL ? row->offset + (start - row->start) : 0;
    m->readable = true;
    sources[m - t->maps] = (struct source){0, 0, -1};
    return m;
}

/* What gdb finds unchanged in a file it does not list as a segment. Only the list of files has it,
 * which does not say who may read it. */
static bool add_files(struct target *t, uint64_t from, uint64_t to)
{
    for (size_t i = row_from(from); i < row_count && rows[i].start < to; i++) {
        uint64_t start = rows[i].start > from ? rows[i].start : from;
        uint64_t end = rows[i].end < to ? rows[i].end : to;
        if (start < end && add_mapping(t, start, end, &rows[i]) == NULL)
            return false;
    }
    return true;
}

/* One that the core lists. It is divided where a file begins or ends, if a tool has joined those.
 */
static bool add_segment(struct target *t, const Elf64_Phdr *p)
{
    uint64_t left = p->p_offset < core_bytes ? core_bytes - p->p_offset : 0;
    uint64_t dumped = p->p_filesz < p->p_memsz ? p->p_filesz : p->p_memsz;
    cut |= dumped > left;
    dumped = (dumped < left ? dumped : left) / PAGE * PAGE;
    uint64_t to = p->p_vaddr + p->p_memsz;
    for (uint64_t at = p->p_vaddr, end; at < to; at = end) {
        size_t i = row_from(at);
        bool is_file = i < row_count && rows[i].start <= at;
        end = i < row_count ? (is_file ? rows[i].end : rows[i].start) : to;
        end = end < to ? end : to;
        struct mapping *m = add_mapping(t, at, end, is_file ? &rows[i] : NULL);
        if (m == NULL)
            return false;
        uint64_t inside = at - p->p_vaddr;
        uint64_t rest = dumped > inside ? dumped - inside : 0;
        m->rss = rest < end - at ? rest : end - at;
        m->readable = p->p_flags & PF_R;
        m->writable = p->p_flags & PF_W;
        m->executable = p->p_flags & PF_X;
        sources[m - t->maps].offset = p->p_offset + inside;
        sources[m - t->maps].bytes = m->rss;
    }
    return true;
}

static bool add_mappings(struct target *t, Elf64_Phdr *segments, unsigned count)
{
    qsort(segments, count, sizeof *segments, by_start);
    sources = calloc(4 * (count + row_count + 1u), sizeof *sources);
    if (sources == NULL)
        return false;
    uint64_t end = 0;
    for (unsigned i = 0; i < count; i++) {
        const Elf64_Phdr *p = &segments[i];
        if (p->p_type != PT_LOAD || p->p_memsz == 0 || p->p_vaddr % PAGE != 0 || p->p_vaddr < end ||
            p->p_vaddr + p->p_memsz < p->p_vaddr)
            continue;
        if (!add_files(t, end, p->p_vaddr) || !add_segment(t, p))
            return false;
        end = p->p_vaddr + p->p_memsz;
    }
    return add_files(t, end, UINT64_MAX);
}

bool core_open(struct target *t, const char *path, struct why *why)
{
    Elf64_Ehdr elf;
    struct stat is;
    *t = (struct target){.read_page = read_page, .presence = presence, .pagemap = -1};
    t->memory = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (t->memory < 0 || fstat(t->memory, &is) != 0)
        return because(why, errno == EACCES ? EXIT_RIGHTS : EXIT_TARGET, "%s: %s", path,
                       strerror(errno));
    core_bytes = (uint64_t)is.st_size;
    if (!S_ISREG(is.st_mode) || !read_at(t->memory, 0, &elf, sizeof elf) ||
        memcmp(elf.e_ident, ELFMAG, SELFMAG) != 0 || elf.e_ident[EI_CLASS] != ELFCLASS64 ||
        elf.e_type != ET_CORE)
        return because(why, EXIT_TARGET, "%s: expected a PID, or a core file of 64 bits", path);
    unsigned count = elf.e_phnum;
    Elf64_Phdr *segments = calloc(count + 1u, sizeof *segments);
    bool whole = segments != NULL && elf.e_phentsize == sizeof *segments && count < SEGMENTS_MOST &&
                 read_at(t->memory, elf.e_phoff, segments, count * sizeof *segments);
    Elf64_Phdr note = {0};
    for (unsigned i = 0; whole && i < count; i++)
        if (segments[i].p_type == PT_NOTE)
            note = segments[i];
    if (whole)
        read_notes(t, note.p_offset, note.p_filesz);
    whole = whole && add_mappings(t, segments, count) && t->map_count > 0;
    free(segments);
    if (!whole)
        return because(why, EXIT_TARGET, "%s: the core file is damaged or cut off", path);
    open_files(t);
    return true;
}

bool core_is_cut(void) { return cut; }

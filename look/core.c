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

/* The file that the core says a mapping is of, if what it begins with is what was dumped. */
static int same_file(const struct target *t, const struct mapping *m, const struct source *s)
{
    unsigned char dumped[PAGE];
    unsigned char now[PAGE];
    int file = open(m->name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0)
        return -1;
    struct stat is;
    bool same = fstat(file, &is) == 0 && S_ISREG(is.st_mode);
    if (same && m->offset == 0 && s->bytes >= PAGE)
        same = read_at(t->memory, s->offset, dumped, PAGE) && read_at(file, 0, now, PAGE) &&
               memcmp(dumped, now, PAGE) == 0;
    if (same)
        return file;
    close(file);
    return -1;
}

/* The note of mapped files: a count, the size of a page, and for each its start, end and offset in
 * pages; then their names. */
static void name_mappings(struct target *t, const unsigned char *note, size_t bytes)
{
    uint64_t head[2];
    if (bytes < sizeof head)
        return;
    memcpy(head, note, sizeof head);
    uint64_t count = head[0];
    if (count > (bytes - sizeof head) / 24 || head[1] == 0 || head[1] > 1u << 24)
        return;
    const char *name = (const char *)note + sizeof head + count * 24;
    const char *end = (const char *)note + bytes;
    for (uint64_t i = 0; i < count && name < end; i++) {
        uint64_t row[3];
        memcpy(row, note + sizeof head + i * 24, sizeof row);
        size_t length = strnlen(name, (size_t)(end - name));
        if (name + length == end)
            return;
        struct mapping *m = target_mapping(t, row[0]);
        if (m != NULL && !m->file) {
            if (mapping_rename(t, m, name)) {
                m->file = true;
                m->offset = row[2] * head[1] + (m->start - row[0]);
            }
        }
        name += length + 1;
    }
}

static void read_notes(struct target *t, uint64_t at, uint64_t bytes)
{
    unsigned char *notes = bytes <= NOTES_MOST ? malloc((size_t)bytes + 1) : NULL;
    if (notes == NULL || !read_at(t->memory, at, notes, (size_t)bytes)) {
        free(notes);
        return;
    }
    for (uint64_t i = 0; i + sizeof(Elf64_Nhdr) <= bytes;) {
        Elf64_Nhdr note;
        memcpy(&note, notes + i, sizeof note);
        uint64_t described = i + sizeof note + ((note.n_namesz + 3ull) & ~3ull);
        uint64_t next = described + ((note.n_descsz + 3ull) & ~3ull);
        if (described > bytes || next > bytes)
            break;
        if (note.n_type == NT_FILE)
            name_mappings(t, notes + described, note.n_descsz);
        i = next;
    }
    free(notes);
}

static int by_start(const void *a, const void *b)
{
    const Elf64_Phdr *left = a;
    const Elf64_Phdr *right = b;
    return left->p_vaddr < right->p_vaddr ? -1 : left->p_vaddr > right->p_vaddr;
}

static bool add_mappings(struct target *t, Elf64_Phdr *segments, unsigned count)
{
    qsort(segments, count, sizeof *segments, by_start);
    sources = calloc(count + 1u, sizeof *sources);
    if (sources == NULL)
        return false;
    uint64_t end = 0;
    for (unsigned i = 0; i < count; i++) {
        const Elf64_Phdr *p = &segments[i];
        if (p->p_type != PT_LOAD || p->p_memsz == 0 || p->p_vaddr % PAGE != 0 || p->p_vaddr < end ||
            p->p_vaddr + p->p_memsz < p->p_vaddr)
            continue;
        struct mapping *m = target_add(t, "");
        if (m == NULL)
            return false;
        struct source *s = &sources[m - t->maps];
        uint64_t left = p->p_offset < core_bytes ? core_bytes - p->p_offset : 0;
        uint64_t dumped = p->p_filesz < p->p_memsz ? p->p_filesz : p->p_memsz;
        *s = (struct source){p->p_offset, (dumped < left ? dumped : left) / PAGE * PAGE, -1};
        cut |= dumped > left;
        end = p->p_vaddr + p->p_memsz;
        *m = (struct mapping){.start = p->p_vaddr,
                              .end = end,
                              .rss = s->bytes,
                              .readable = p->p_flags & PF_R,
                              .writable = p->p_flags & PF_W,
                              .executable = p->p_flags & PF_X,
                              .name = m->name};
    }
    return true;
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
    Elf64_Phdr notes = {0};
    for (unsigned i = 0; whole && i < count; i++)
        if (segments[i].p_type == PT_NOTE)
            notes = segments[i];
    whole = whole && add_mappings(t, segments, count) && t->map_count > 0;
    free(segments);
    if (!whole)
        return because(why, EXIT_TARGET, "%s: the core file is damaged or cut off", path);
    read_notes(t, notes.p_offset, notes.p_filesz);
    for (size_t i = 0; i < t->map_count; i++)
        if (t->maps[i].file)
            sources[i].file = same_file(t, &t->maps[i], &sources[i]);
    return true;
}

bool core_is_cut(void) { return cut; }

#include "find.h"

#include <elf.h>
#include <string.h>

#include "because.h"
#include "notes.h"

#define HEADERS_MOST 64

/* Where the note of ours points, in a segment of notes; 0 if it is not there. */
static uint64_t in_notes(struct target *t, uint64_t at, uint64_t bytes)
{
    unsigned char notes[NOTES_MOST];
    size_t length = bytes < sizeof notes ? (size_t)bytes : sizeof notes;
    size_t next = 0;
    struct note note;
    int32_t distance;
    if (!target_read(t, at, notes, length))
        return 0;
    while (note_next(notes, length, &next, "hakmem", &note))
        if (note.type == WATCH_NOTE && note.bytes == sizeof distance &&
            note.at + sizeof distance <= length) {
            memcpy(&distance, notes + note.at, sizeof distance);
            return at + note.at + (uint64_t)(int64_t)distance;
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

bool tables_find(struct target *t, struct tables *tables, struct why *why)
{
    bool found = false;
    because(
        why, EXIT_WITHOUT,
        "it does not use hakmem, or one that is older than this command can read, or whose file "
        "was overwritten since it started");
    for (size_t i = 0; i < t->map_count; i++) {
        const struct mapping *m = &t->maps[i];
        uint64_t at = m->offset == 0 && m->file && m->readable ? in_file(t, m) : 0;
        struct tables one;
        if (at == 0 || !tables_read(t, at, &one, why))
            continue;
        if (!found || is_used(t, &one))
            *tables = one;
        found = true;
    }
    return found;
}

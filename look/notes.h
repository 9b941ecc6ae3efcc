/* The notes of an ELF file, of a segment that was read. */
#ifndef HAKMEM_LOOK_NOTES_H
#define HAKMEM_LOOK_NOTES_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define NOTES_MOST 4096 /* bytes that are read */

struct note {
    uint32_t type, bytes;
    size_t at; /* where what it says begins, of that many bytes */
};

static inline size_t note_padded(uint32_t n) { return ((size_t)n + 3) & ~(size_t)3; }

/* The next one by this name, however many zeros end it; `*at` is where to look, and moves on. */
static inline bool note_next(const unsigned char *notes, size_t length, size_t *at,
                             const char *name, struct note *found)
{
    while (*at + sizeof(Elf64_Nhdr) <= length) {
        Elf64_Nhdr note;
        memcpy(&note, notes + *at, sizeof note);
        size_t named = *at + sizeof note;
        *found = (struct note){note.n_type, note.n_descsz, named + note_padded(note.n_namesz)};
        *at = found->at + note_padded(note.n_descsz);
        if (note_padded(note.n_namesz) == note_padded((uint32_t)strlen(name) + 1) &&
            found->at <= length && memcmp(notes + named, name, strlen(name) + 1) == 0)
            return true;
    }
    return false;
}

#endif

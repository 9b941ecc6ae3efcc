#include "memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PAGES (PIECE / PAGE)
#define FIRST_ROOM ((size_t)1024)
#define FREE_PLACE 1u

/* What may be kept, if the kernel does not say what is available. */
#define KEPT_LEAST ((size_t)256 << 20)

static size_t bytes_available(void)
{
    char line[128];
    const char *word = "MemAvailable:";
    size_t kib = 0;
    FILE *file = fopen("/proc/meminfo", "re");
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, word, strlen(word)) == 0)
            kib = strtoull(line + strlen(word), NULL, 10);
    if (file != NULL)
        fclose(file);
    return kib * 1024;
}

static struct piece *table_make(size_t room)
{
    struct piece *pieces = calloc(room, sizeof *pieces);
    for (size_t i = 0; pieces != NULL && i < room; i++)
        pieces[i].at = FREE_PLACE;
    return pieces;
}

bool memory_start(struct memory *memory, struct target *t)
{
    size_t keep = bytes_available() / 2;
    *memory = (struct memory){
        .t = t, .room = FIRST_ROOM, .left = (keep > KEPT_LEAST ? keep : KEPT_LEAST) / PIECE};
    memory->pieces = table_make(FIRST_ROOM);
    memory->scratch = malloc(PIECE);
    return memory->pieces != NULL && memory->scratch != NULL;
}

void memory_end(struct memory *memory)
{
    for (size_t i = 0; memory->pieces != NULL && i < memory->room; i++)
        if (memory->pieces[i].at != FREE_PLACE)
            free(memory->pieces[i].bytes);
    free(memory->pieces);
    free(memory->scratch);
    *memory = (struct memory){0};
}

static struct piece *place_of(struct piece *pieces, size_t room, uint64_t at)
{
    size_t i = (size_t)(at / PIECE * 0x9e3779b97f4a7c15u >> 20) % room;
    while (pieces[i].at != at && pieces[i].at != FREE_PLACE)
        i = (i + 1) % room;
    return &pieces[i];
}

static bool table_grow(struct memory *memory)
{
    struct piece *more = table_make(2 * memory->room);
    if (more == NULL)
        return false;
    for (size_t i = 0; i < memory->room; i++)
        if (memory->pieces[i].at != FREE_PLACE)
            *place_of(more, 2 * memory->room, memory->pieces[i].at) = memory->pieces[i];
    free(memory->pieces);
    memory->pieces = more;
    memory->room *= 2;
    return true;
}

/* Reads the pages that are there, and zeroes for others; false where none is there. */
static bool read_pages(struct target *t, uint64_t at, unsigned char *to, size_t bytes)
{
    uint8_t present[PAGES];
    bool any = false;
    size_t pages = bytes / PAGE;
    target_presence(t, at, pages, present);
    for (size_t i = 0, n; i < pages; i += n) {
        for (n = 1; i + n < pages && !present[i + n] == !present[i]; n++)
            ;
        unsigned char *here = to + i * PAGE;
        ssize_t got = present[i] ? pread(t->memory, here, n * PAGE, (off_t)(at + i * PAGE)) : 0;
        any |= got > 0;
        size_t done = got > 0 ? (size_t)got : 0;
        memset(here + done, 0, n * PAGE - done);
    }
    return any;
}

const unsigned char *memory_at(struct memory *memory, uint64_t at, size_t *bytes, bool keep)
{
    uint64_t start = at - at % PIECE;
    size_t inside = (size_t)(at - start);
    if (*bytes > PIECE - inside)
        *bytes = PIECE - inside;
    struct piece *piece = place_of(memory->pieces, memory->room, start);
    if (piece->at == start)
        return piece->bytes != NULL ? piece->bytes + inside : NULL;
    if (keep && memory->left > 0 && (memory->count < memory->room / 2 || table_grow(memory))) {
        unsigned char *kept = malloc(PIECE);
        if (kept != NULL) {
            piece = place_of(memory->pieces, memory->room, start);
            if (!read_pages(memory->t, start, kept, PIECE)) {
                free(kept);
                kept = NULL;
            }
            *piece = (struct piece){start, kept};
            memory->count++;
            memory->left -= kept != NULL;
            return kept != NULL ? kept + inside : NULL;
        }
        memory->left = 0;
    }
    uint64_t first = at - at % PAGE;
    size_t length = (inside % PAGE + *bytes + PAGE - 1) / PAGE * PAGE;
    return read_pages(memory->t, first, memory->scratch, length) ? memory->scratch + inside % PAGE
                                                                 : NULL;
}

bool memory_read(struct memory *memory, uint64_t at, void *to, size_t bytes)
{
    for (unsigned char *out = to; bytes > 0;) {
        size_t n = bytes;
        if (at > UINT64_MAX / 2)
            return false;
        const unsigned char *here = memory_at(memory, at, &n, true);
        if (here == NULL)
            return false;
        memcpy(out, here, n);
        out += n;
        at += n;
        bytes -= n;
    }
    return true;
}

/* What is looked at: a process, or the file that one left. Its memory, which of its pages are
 * resident, and what is mapped where, by the kernel's word. Nothing that is read is believed: every
 * address may be wrong, and every number may be any number. */
#ifndef HAKMEM_SHEET_TARGET_H
#define HAKMEM_SHEET_TARGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- memory of a look ----
 *
 * Straight from the kernel: the heap that is looked at may be the own one, and must not change by
 * it. It is zero, and all of it goes back at once. */

struct room {
    struct region *regions;
    char *at;
    size_t left;
    bool short_of; /* there was none */
};

/* Null, and `short_of`, where the kernel gives none. */
void *room_get(struct room *room, size_t bytes);

/* An array that can hold one more than `count` members of `each` bytes; the same, or a copy twice
 * as long. */
void *room_grown(struct room *room, void *array, size_t count, size_t *most, size_t each);

void room_release(struct room *room);

/* ---- spans ----
 *
 * Spans of addresses that do not overlap, such as memory that was counted; each with a number. A
 * tree that chance balances (a treap). The chance is a secret of this process: who is looked at
 * chooses the addresses, and could else make a list of the tree. */

struct span {
    uint64_t start, end;
    uint32_t number;
    uint64_t rank; /* by chance; no span's is above its parent's */
    struct span *left, *right;
};

struct spans {
    struct room *room;
    struct span *root;
    uint64_t chance;
};

/* Empty; spans lie in the room. */
void spans_start(struct spans *spans, struct room *room);

/* Whether any of [start, end) lies in a span. */
bool spans_meet(const struct spans *spans, uint64_t start, uint64_t end);

/* Adds one; false where it overlaps one, or there is no memory. */
bool spans_add(struct spans *spans, uint64_t start, uint64_t end, uint32_t number);

/* The first that begins at the address or above; null if none does. */
const struct span *spans_from(const struct spans *spans, uint64_t at);

/* ---- what is looked at ---- */

#define PAGE 4096u
#define SCRATCH 2048u

/* A mapping. In bytes; `name` is empty where there is none. */
struct mapping {
    uint64_t start, end, offset;
    uint64_t rss, huge;       /* resident; of that in huge pages */
    uint64_t anonymous;       /* resident, and no page of a file */
    uint64_t swapped;         /* not resident: in swap */
    uint64_t claimed;         /* of what is resident, what is known to be the heap's */
    uint64_t claimed_swapped; /* of what is in swap */
    bool heap;                /* some of it is the heap's */
    bool readable, writable, executable, file;
    char *name;
};

struct target {
    struct mapping *maps; /* by address */
    size_t map_count, map_most;
    bool (*read_page)(const struct target *, uint64_t page, void *to);
    /* Of n pages from `page` on, a byte each, zero before: what is there. */
    void (*presence)(const struct target *, uint64_t page, size_t n, uint8_t *present);
    int memory, pagemap; /* descriptors */
    uint64_t budget;     /* steps that may still be taken: pages to read, blocks in caches */
    struct room room;    /* of all that a look needs */
    struct kept *kept;   /* what was read last */
    void *scratch;       /* SCRATCH bytes for what reads, whose stack may be small */
};

/* What is there of a page. */
enum { RESIDENT = 1, SWAPPED = 2 };

/* Before the first read, and before each further look. False without memory. */
bool target_begin(struct target *t);

/* Sets the budget to enough for what is resident: a heap that means to mislead leads to nothing for
 * ever. */
void target_allow(struct target *t);

/* Gives back all memory of a look: mappings, too. */
void target_forget(struct target *t);

/* Adds a mapping, zero but for its name, of which a copy is made; null without memory. */
struct mapping *target_add(struct target *t, const char *name);

/* Pays for a step; false where there were too many. */
bool target_spend(struct target *t);

/* Copies; false where a byte can't be read, or was never there: to read it would make a page. */
bool target_read(struct target *t, uint64_t at, void *to, size_t bytes);

/* What is there of n pages, a byte each. */
void target_presence(struct target *t, uint64_t page, size_t n, uint8_t *present);

/* Whether all of this is mapped, in one mapping or in some that follow each other. */
bool target_mapped(const struct target *t, uint64_t at, uint64_t bytes);

/* The mapping that has the address; null if there is none. */
struct mapping *target_mapping(const struct target *t, uint64_t at);

/* ---- why a heap can't be read, in one line ---- */

/* The numbers are those with which hakmem/look ends. */
enum ending {
    EXIT_DONE = 0,
    EXIT_USAGE = 2,
    EXIT_TARGET = 3, /* there is no such process or file, or it can't be read */
    EXIT_RIGHTS = 4,
    EXIT_WITHOUT = 5,  /* there is no hakmem in it */
    EXIT_NONSENSE = 6, /* what it says of its heap makes no sense, or is of an unknown format */
    EXIT_WAITS = 7,    /* the order is given, and not yet done */
    EXIT_REFUSED = 8
};

struct why {
    enum ending ending;
    char line[512];
};

/* Says it, and returns false. */
bool why_set(struct why *why, enum ending ending, const char *line);

/* ---- a process ----
 *
 * What the kernel says of it: its memory, what is mapped, and which pages are there. By plain
 * system calls: the process may be the own one, in the middle of a call of stdio. */

/* `process` is a PID, or "self". Opens its memory; 0, or the number of an error. */
int kernel_open(struct target *t, const char *process);
void kernel_close(struct target *t);

/* Forgets what is known and reads what is mapped. 0; EINVAL where a line is not understood; or the
 * number of another error. There is no mapping where a process has ended. */
int kernel_maps(struct target *t, const char *process);

/* What a file of /proc says after the word, such as "Rss:", in bytes; 0 where it does not. */
uint64_t kernel_bytes(const char *process, const char *file, const char *word);

/* When it began, in ticks since the machine did; 0 where there is no such process. */
uint64_t kernel_start(const char *process);

/* By the clock of files, in milliseconds. */
struct times {
    uint64_t began; /* the process; 0: it is not known */
    uint64_t now;
};

struct times kernel_times(const char *process);

#endif

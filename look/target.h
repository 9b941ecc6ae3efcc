/* What is looked at: a process, or the file that one left. Its memory, which of its pages are
 * resident, and what is mapped where, by the kernel's word. Nothing that is read is believed: every
 * address may be wrong, and every number may be any number.
 *
 * One is looked at at a time. */
#ifndef HAKMEM_LOOK_TARGET_H
#define HAKMEM_LOOK_TARGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PAGE 4096u

/* A mapping. In bytes; `name` is empty where there is none. */
struct mapping {
    uint64_t start, end, offset;
    uint64_t rss, huge; /* resident; of that in huge pages */
    uint64_t claimed;   /* of what is resident, what is known to be the heap's */
    bool heap;          /* some of it is the heap's */
    bool readable, writable, executable, file;
    char *name;
};

struct target {
    struct mapping *maps; /* by address */
    size_t map_count;
    bool (*read_page)(const struct target *, uint64_t page, void *to);
    /* Of n pages from `page` on, a byte each, zero before: what is there. */
    void (*presence)(const struct target *, uint64_t page, size_t n, uint8_t *present);
    int memory, pagemap; /* descriptors */
    uint64_t budget;     /* pages and chunks of presence that may still be asked for */
};

/* What is there of a page. */
enum { RESIDENT = 1, SWAPPED = 2 };

/* Before the first read, and before each further look. */
void target_begin(struct target *t);

/* Copies; false where a byte can't be read, or was never there: to read it would make a page. */
bool target_read(struct target *t, uint64_t at, void *to, size_t bytes);

/* What is there of n pages, a byte each. */
void target_presence(struct target *t, uint64_t page, size_t n, uint8_t *present);

/* Whether all of this is mapped, in one mapping or in some that follow each other. */
bool target_mapped(const struct target *t, uint64_t at, uint64_t bytes);

/* The mapping that has the address; null if there is none. */
struct mapping *target_mapping(const struct target *t, uint64_t at);

#endif

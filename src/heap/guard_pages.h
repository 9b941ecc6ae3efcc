/* Guard pages: in a hardened heap nobody can touch some of the pages of each slab of small blocks,
 * so a read or a write that goes a page beyond a block, or before it, ends the program. The blocks
 * that have a byte in such a page are never handed out: to their slab they are always free. */
#ifndef HAKMEM_HEAP_GUARD_PAGES_H
#define HAKMEM_HEAP_GUARD_PAGES_H

#include "heap/classes.h"
#include "os/os.h"

/* Of each slab of a class. */
struct guard_plan {
    uint16_t pages;  /* a set bit: nobody can touch the page; 0 for blocks of whole slices */
    uint16_t places; /* blocks that have no byte there */
    uint16_t words;  /* where in guard_words a set bit says of each block that it is one of these */
};
extern const struct guard_plan guard_table[CLASSES] HIDDEN;
extern const uint64_t guard_words[] HIDDEN;

/* The table, or null without guard pages. Constant after the process's start. */
extern const struct guard_plan *guard_plans HIDDEN;

/* Decides: whether the heap is hardened so, and the kernel has pages of 4 KiB that can be guards
 * within a mapping (Linux 6.13). Before the first slab. */
void guard_pages_start(void);

/* How many blocks of a slab can be handed out. */
FAST unsigned guard_places(unsigned cls)
{
    return likely(guard_plans == NULL) ? size_classes[cls].blocks : guard_plans[cls].places;
}

/* Those of a word of a slab's bits. */
FAST uint64_t guard_word(unsigned cls, unsigned index)
{
    return likely(guard_plans == NULL) ? ~(uint64_t)0 : guard_words[guard_plans[cls].words + index];
}

FAST uint64_t guard_pages_of(unsigned cls)
{
    return likely(guard_plans == NULL) ? 0 : guard_plans[cls].pages;
}

/* Whether nobody can touch the page of an address in a slab of the class. */
FAST bool guard_pages_hold(const void *p, unsigned cls)
{
    uint64_t pages = guard_pages_of(cls);
    return unlikely(pages != 0) &&
           (pages >> ((uintptr_t)p % SLICE >> lowest_bit(os_page)) & 1) != 0;
}

/* Whether the block of the class that begins at p is never handed out. */
FAST bool guard_pages_bar(const void *p, unsigned cls)
{
    if (likely(guard_plans == NULL))
        return false;
    const struct size_class *c = &size_classes[cls];
    uint64_t offset = (uintptr_t)p % SLICE;
    unsigned number = (unsigned)(offset / CLASS_GRAIN * c->reciprocal >> CLASS_RECIPROCAL_BITS);
    return number >= c->blocks || (guard_word(cls, number / 64) >> number % 64 & 1) == 0;
}

#endif

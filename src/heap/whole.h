/* Blocks of whole slices, from 33 KiB to 2 MiB: each is a slab of one block. Thread safe. */
#ifndef HAKMEM_HEAP_WHOLE_H
#define HAKMEM_HEAP_WHOLE_H

#include "base/defs.h"
#include "base/misuse.h"
#include "heap/classes.h"

struct slab;

/* Notes that p, a block of whole slices, is handed to the program for n bytes. Whether it still
 * holds zeroes only. */
bool whole_hand_out(const void *p, size_t n);

/* The class of a block of whole slices, which the caller holds, by its entry in the window's table.
 */
unsigned whole_class(const uint16_t *entry);

/* Notes that p, by the map a block of whole slices, is freed, and what class it has. Exact: of any
 * number of calls for one block, on any threads, one gets it. */
enum misuse whole_take_back(const void *p, unsigned *cls);

/* Makes the block of whole slices at p hold n bytes, more than it has, where it stands, if the
 * slices behind it are free. */
bool whole_resize(const void *p, size_t n);

/* The class of a block of whole slices of n bytes at a multiple of `align`. */
static inline unsigned class_of_whole(size_t n, size_t align)
{
    size_t least = align <= SLICE ? larger(n, align) : n;
    return class_of_slices(larger(least, CLASS_MOST + 1));
}

#endif

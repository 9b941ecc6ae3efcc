/* Blocks of whole slices, from 33 KiB to 2 MiB: each is a slab of one block. Thread safe. */
#ifndef HAKMEM_HEAP_WHOLE_H
#define HAKMEM_HEAP_WHOLE_H

#include "base/defs.h"
#include "base/misuse.h"

struct slab;

/* Notes that p, a block of whole slices, is handed to the program for n bytes. Whether it still
 * holds zeroes only. */
bool whole_hand_out(const void *p, size_t n);

/* The class of the block of whole slices that is in use at p by the map; CLASSES if another thread
 * has just freed it. */
unsigned whole_class(const void *p);

/* Notes that p, by the map a block of whole slices, is freed, and what class it has; or what is
 * wrong. */
enum misuse whole_take_back(const void *p, unsigned *cls);

/* Makes the block of whole slices at p hold n bytes, more than it has, where it stands, if the
 * slices behind it are free. */
bool whole_resize(const void *p, size_t n);

#endif

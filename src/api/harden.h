/* Blocks of classes in a hardened heap, as the slow paths take and give them. */
#ifndef HAKMEM_API_HARDEN_H
#define HAKMEM_API_HARDEN_H

#include "base/defs.h"
#include "base/misuse.h"

/* A block of the class in use; null without memory, or not_entered(). */
void *hardened_block(unsigned cls);

/* malloc for a block of a class; null where take (slow.c) has to see to it. */
void *hardened_malloc(size_t n);

/* free; false where p is no block of a class in the window, and none of no bytes. */
bool hardened_free_at_once(void *p, const void *caller);

/* Whether p is a block of no bytes that nobody can touch. */
bool hardened_nothing(const void *p);

/* Whether realloc leaves a block of a class where it is: a new one would have as many bytes. */
bool hardened_stays(size_t n, size_t usable);

/* The free of a block in a slab of the class, or of what is none. */
struct finding hardened_free(unsigned cls, void *p);

/* The free of any block in a slab, while a fork holds the heap. */
struct finding hardened_free_later(void *p);

#endif

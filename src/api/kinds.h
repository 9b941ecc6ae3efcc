/* The two kinds of heap. Which one a process has is known at its start and never changes: `plain`,
 * whose blocks of classes pass through the threads' stacks, or `hardened` (front/hardened.h). What
 * differs is in these two tables and nowhere else in the slow path. Recordings, profiles and guards
 * are no kinds: they stand around the heap that there is, and come and go. */
#ifndef HAKMEM_API_KINDS_H
#define HAKMEM_API_KINDS_H

#include "base/misuse.h"
#include "base/policy.h"

struct kind {
    bool slices; /* blocks of whole slices; without, they are mappings of their own */

    /* malloc without a sample; null without memory, errno set. */
    void *(*malloc)(size_t n);

    /* A block of the class, ready for the program; null without memory, or not_entered(). */
    void *(*take)(unsigned cls);

    /* One that comes straight from a slab becomes so. */
    void (*ready)(void *p, unsigned cls);

    /* free of p, where the thread's cache alone can serve it; else false, and nothing is done. */
    bool (*free)(void *p, const void *caller);

    /* The free of an address in a slab of the stack's class; `past`: not into a stack. */
    struct finding (*give)(unsigned stack, void *p, bool past);

    /* The same of an address in a sampled slab, while a fork holds the heap. */
    struct finding (*give_later)(void *p);

    /* Whether realloc leaves a block of so many usable bytes where it is. */
    bool (*stays)(size_t n, size_t usable);

    /* What is wrong with an address in a slab as one of a block in use; a block begins there. */
    enum misuse (*look)(const void *p, unsigned bin);

    /* The fewest bytes that a block with so many usable ones may have been allocated or reallocated
     * with. */
    size_t (*least)(const void *p, unsigned bin, size_t usable);
};

extern const struct kind plain HIDDEN;
extern const struct kind hardened_kind HIDDEN;

FAST const struct kind *kind(void) { return hardened() ? &hardened_kind : &plain; }

#endif

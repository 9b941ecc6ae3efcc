/* How superslabs are made and ended. The caller holds the superslabs' lock, except for
 * superslab_end and the counts. */
#ifndef HAKMEM_BACK_SUPERSLABS_H
#define HAKMEM_BACK_SUPERSLABS_H

#include "back/superslab.h"

/* A new one, all free, with room for `least` slices; null without memory. */
struct superslab *superslab_new(size_t least);

/* Makes the first one longer where it stands, by n free slices or more; null if it can't. */
struct superslab *superslab_grow(size_t n);

/* Takes an empty one out of everything; and unmaps it then, without the lock. At its limit of
 * mappings the kernel can refuse: then it stays, and its pages go. Whether they have. */
void superslab_withdraw(struct superslab *s);
bool superslab_end(struct superslab *s);

/* Superslabs mapped now, and their bytes. */
size_t superslabs_mapped(void);
size_t superslabs_bytes(void);

/* Where all superslabs are kept, for the accounting. */
struct superslabs_inside {
    struct list
        *by_longest; /* [n - 1]: longest run n; a head's next is null before its first use */
    struct list *aged;
    uint64_t *nonempty;
    size_t *mapped, *retained;
};
struct superslabs_inside superslabs_inside(void);

#endif

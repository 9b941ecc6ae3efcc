/* When resident memory has passed the option profile_rss: once, and again after it has grown by a
 * further quarter. Memory that shrinks and grows again to what it was counts no more, so there are
 * few files, however long the program runs. */
#ifndef HAKMEM_LIFE_CROSSING_H
#define HAKMEM_LIFE_CROSSING_H

#include "base/defs.h"

struct crossing {
    bool found;
    int error;       /* an errno: resident memory can't be read */
    unsigned number; /* from 1 on */
    size_t resident;
};

/* Looks, at most every so often; `now` in milliseconds. Thread safe, and needs no lock. */
struct crossing crossing_look(size_t now);

/* It is dealt with. The caller lets no other thread do so. */
void crossing_done(const struct crossing *crossing);

#endif

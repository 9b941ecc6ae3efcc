/* The heap profile of a process (src/sheet/profile.h), read from outside. */
#ifndef HAKMEM_LOOK_PROFILE_H
#define HAKMEM_LOOK_PROFILE_H

#include <stdio.h>

#include "base/text.h"
#include "sheet/heap.h"

/* What is known of sites beyond their lines. */
struct profile_more {
    /* Adds lines to those of the site at this address; false where it is to be left out. */
    bool (*add)(struct profile_more *, uint64_t site, struct text *);
    /* Adds sites after the last one, and returns how many. May be null. */
    uint64_t (*add_sites)(struct profile_more *, struct text *);
};

/* Prints it, with what is mapped in the process that /proc calls so. `more` may be null. `pid` is
 * its number as it knows it, or 0 if that is not to be said. */
bool profile_print(FILE *out, struct target *t, const struct tables *tables, const char *process,
                   uint64_t pid, struct profile_more *more, struct why *why);

/* Adds up all of its sites, and reads what its tables have besides. */
struct profile_sums;
bool profile_sum_all(struct target *t, const struct watch_profile *w, struct profile_sums *sums);

/* Calls `each` with the address of every site; false where their tables make no sense. */
bool profile_sites(struct target *t, const struct watch_profile *w,
                   bool (*each)(void *to, uint64_t site), void *to);

#endif
